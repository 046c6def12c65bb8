#pragma once

#include <cmath>

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// The bound of a sum of `count` products whose magnitudes add up to `magnitude`. `factors` is the
/// sum of the magnitudes of all factors, because implementations may flush subnormal ones to zero.
inline double product_error(int64_t count, double magnitude, double factors) {
  return (sum_error(count) + 2 * kUnit) * magnitude + kSmallest * (1 + factors);
}

/// Bounds y = x * weight^T + bias, where weight(n, k) returns the elements of the weight.
template <class Weight>
void bound_linear(const CallView& c, const std::vector<double>& x, int64_t depth,
                  const Weight& weight, ExpectedOutput& y) {
  const int64_t width = c.tensor("y").shape.back();
  for (size_t i = 0; i < y.values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / width, n = static_cast<int64_t>(i) % width;
    double magnitude = 0, factors = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double a = std::abs(x[static_cast<size_t>(row * depth + k)]);
      const double b = std::abs(weight(n, k));
      magnitude += a * b;
      factors += a + b;
    }
    const double bias = c.has("bias") ? c.tensor("bias").values[static_cast<size_t>(n)] : 0;
    y.bounds[i] = product_error(depth, magnitude, factors) + 2 * kUnit * std::abs(bias);
  }
}

}  // namespace opmux::verify::operators
