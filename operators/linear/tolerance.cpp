#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

void bound_plain_linear(const CallView& c, Expected& expected) {
  const Tensor& weight = c.tensor("weight");
  const int64_t depth = weight.shape[1];
  bound_linear(
      c, c.tensor("x").values, depth,
      [&](int64_t n, int64_t k) { return weight.values[static_cast<size_t>(n * depth + k)]; },
      expected.of(c, "y"));
}

}  // namespace

Bounds linear() { return {.op = "linear", .bound = bound_plain_linear}; }

}  // namespace opmux::verify::operators
