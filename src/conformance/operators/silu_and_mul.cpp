#include "conformance/operators/gate.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {
namespace {

/// v / (1 + exp(-v)) * b: nothing cancels, so every step adds a relative error. An exponential
/// that overflows stands for a quotient that is flushed to zero.
void bound_silu_and_mul(const Case& c, Expected& expected) {
  for_each_gate(c, expected, [](double v, double b, double value, double& bound) {
    bound = std::abs(value) * (kFunction + 4 * kUnit) +
            kSmallest * (1 + std::abs(v)) * (1 + std::abs(b));
  });
}

}  // namespace

Shaper silu_and_mul() {
  return {.op = "silu_and_mul", .shape = shape_halves, .bound = bound_silu_and_mul};
}

}  // namespace opmux::conformance::operators
