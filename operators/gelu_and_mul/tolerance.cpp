#include "operators/common/tolerance/gate.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// v * (1 + erf) / 2 * b: the two terms may cancel, so the error is relative to |v * b|.
void bound_gelu_and_mul(const CallView& c, Expected& expected) {
  const double shortened = shortened_function(c.tensor("y").dtype);
  for_each_gate(c, expected, [&](double v, double b, double, double& bound) {
    bound = std::abs(v * b) * (kFunction + shortened + 6 * kUnit) +
            kSmallest * (1 + std::abs(v)) * (1 + std::abs(b));
  });
}

}  // namespace

Bounds gelu_and_mul() { return {.op = "gelu_and_mul", .bound = bound_gelu_and_mul}; }

}  // namespace opmux::verify::operators
