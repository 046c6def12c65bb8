#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// The sum of integers is exact. Two or three products and the addition of the bias are rounded.
void bound_linear_w8a8(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const auto width = static_cast<size_t>(c.tensor("y").shape.back());
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double bias = c.has("bias") ? std::abs(c.tensor("bias").values[i % width]) : 0;
    y.bounds[i] = 5 * kUnit * (std::abs(y.values[i]) + 2 * bias) + kSmallest;
  }
}

}  // namespace

Bounds linear_w8a8() { return {.op = "linear_w8a8", .bound = bound_linear_w8a8}; }

}  // namespace opmux::verify::operators
