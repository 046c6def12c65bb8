#pragma once

#include <cmath>

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

/// The bound of a sum of `count` products whose magnitudes add up to `magnitude`. `factors` is the
/// sum of the magnitudes of all factors: engines may flush subnormal ones to zero.
inline double product_error(int64_t count, double magnitude, double factors) {
  return (sum_error(count) + 2 * kUnit) * magnitude + kSmallest * (1 + factors);
}

/// Bounds of y = x times the rows of `weight`, where weight(n, k) gives its elements, plus bias.
template <class Weight>
void bound_linear(const Case& c, const std::vector<double>& x, int64_t depth, const Weight& weight,
                  ExpectedOutput& y) {
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

/// Sizes of a product: `depth` terms per element, within what a reference can do in a moment.
inline void shape_linear(Draft& draft, const std::string& width, const std::string& depth) {
  draft.specials(Specials::nan);
  const int64_t most = draft.budget() > 16384 ? 1200 : 160;
  draft.dim(depth) = draft.size_or_none(most);
  draft.dim(width) = draft.size_or_none(most / 2);
  const int64_t rows =
      std::max<int64_t>(1, 200000 / ((draft.dim(depth) + 1) * (draft.dim(width) + 1)));
  for (int64_t& size : draft.leading())
    size = std::min(size, draft.size(std::min<int64_t>(rows, 40)));
}

}  // namespace opmux::conformance::operators
