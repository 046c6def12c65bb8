#include "operators/common/tolerance/product.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// Bounds of a weight of 8-bit floats: products are exact in f32, their sum is not. The magnitude
/// of quantized x is at most that of x and half a step of the quantization.
void bound_floats(const CallView& c, ExpectedOutput& y) {
  const Tensor &x = c.tensor("x"), &weight = c.tensor("weight");
  const int64_t depth = weight.shape[1], width = weight.shape[0];
  const bool quantized = x.dtype == f32 || x.dtype == f16 || x.dtype == bf16;
  const double coarse = quantized ? unit_roundoff(weight.dtype) : 0;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / width, n = static_cast<int64_t>(i) % width;
    double largest = 0;
    for (int64_t k = 0; k < depth; ++k) {
      largest = std::max(largest, std::abs(x.values[static_cast<size_t>(row * depth + k)]));
    }
    const double scale = c.has("x_scale") ? c.tensor("x_scale").values[static_cast<size_t>(row)]
                                          : largest / rounded(1e30, weight.dtype);
    const double step = quantized ? smallest(weight.dtype) * std::abs(scale) : 0;
    double magnitude = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double a = std::abs(x.values[static_cast<size_t>(row * depth + k)]);
      const double own = quantized ? a * (1 + coarse) + step : a * std::abs(scale);
      magnitude += own * std::abs(weight.values[static_cast<size_t>(n * depth + k)]);
    }
    magnitude *= std::abs(c.tensor("weight_scale").values[static_cast<size_t>(n)]);
    const double bias =
        c.has("bias") ? std::abs(c.tensor("bias").values[static_cast<size_t>(n)]) : 0;
    y.bounds[i] = (sum_error(depth) + 4 * kUnit) * magnitude +
                  kUnit * (std::abs(y.values[i]) + 2 * bias) + kSmallest;
  }
}

/// The sum of integers is exact. Two or three products and the addition of the bias are rounded.
void bound_linear_w8a8(const CallView& c, Expected& expected) {
  ExpectedOutput& y = expected.of(c, "y");
  if (is_float(c.tensor("weight").dtype)) return bound_floats(c, y);
  const auto width = static_cast<size_t>(c.tensor("y").shape.back());
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double bias = c.has("bias") ? std::abs(c.tensor("bias").values[i % width]) : 0;
    y.bounds[i] = 5 * kUnit * (std::abs(y.values[i]) + 2 * bias) + kSmallest;
  }
}

}  // namespace

Bounds linear_w8a8() { return {.op = "linear_w8a8", .bound = bound_linear_w8a8}; }

}  // namespace opmux::verify::operators
