#include "operators/common/tolerance/gate.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// v / (1 + exp(-v)) * b: nothing cancels, so every step adds a relative error. If the exponential
/// overflows, the quotient is flushed to zero.
void bound_silu_and_mul(const CallView& c, Expected& expected) {
  const double shortened = shortened_function(c.tensor("y").dtype);
  for_each_gate(c, expected, [&](double v, double b, double value, double& bound) {
    bound = std::abs(value) * (kFunction + shortened + 4 * kUnit) +
            kSmallest * (1 + std::abs(v)) * (1 + std::abs(b));
  });
}

}  // namespace

Bounds silu_and_mul() { return {.op = "silu_and_mul", .bound = bound_silu_and_mul}; }

}  // namespace opmux::verify::operators
