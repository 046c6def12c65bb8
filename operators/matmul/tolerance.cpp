#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

void bound_matmul(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  const Tensor &a = c.tensor("a"), &b = c.tensor("b");
  const size_t rank = a.shape.size();
  const int64_t height = a.shape[rank - 2], depth = a.shape[rank - 1], width = b.shape[rank - 1];
  for (size_t i = 0; i < y.values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t row = at / width, column = at % width, pair = row / height;
    double magnitude = 0, factors = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double left = std::abs(a.values[static_cast<size_t>(row * depth + k)]);
      const double right =
          std::abs(b.values[static_cast<size_t>((pair * depth + k) * width + column)]);
      magnitude += left * right;
      factors += left + right;
    }
    y.bounds[i] = product_error(depth, magnitude, factors);
  }
}

}  // namespace

Bounds matmul() { return {.op = "matmul", .bound = bound_matmul}; }

}  // namespace opmux::verify::operators
