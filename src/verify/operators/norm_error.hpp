#pragma once

#include <cmath>
#include <span>

#include "verify/bounds.hpp"
#include "verify/element.hpp"

namespace opmux::verify::operators {

/// A vector argument, or one value in every place if it was left out.
inline double at_or(const CallView& c, std::string_view name, size_t i, double otherwise) {
  return c.has(name) ? c.tensor(name).values[i] : otherwise;
}

/// One over the root mean square of a row.
inline double rms_factor(std::span<const double> row, double eps) {
  double sum = 0;
  for (const double value : row) sum += value * value;
  return 1 / std::sqrt(sum / static_cast<double>(row.size()) + eps);
}

/// What rounding a normalized value before it meets the weight may add to an error: nothing unless
/// the value, give or take its error, can be rounded to either of two neighbours.
inline double rounding_between(const CallView& c, double normal, double relative) {
  if (c.integer("round_before_weight", 0) == 0) return 0;
  const DType dtype = c.has("weight") ? c.tensor("weight").dtype : c.tensor("x").dtype;
  return std::abs(rounded(normal * (1 + relative), dtype) -
                  rounded(normal * (1 - relative), dtype));
}

/// round_before_weight.
inline bool rounds_first(const CallView& c) { return c.integer("round_before_weight", 0) != 0; }

/// Bounds of y = row * factor * weight: squares are positive, so the error of their sum is relative
/// and the root halves it; then come a root, a quotient and two products. Elements that are flushed
/// to zero before they are multiplied are off by what they were. Where the normalized value is
/// rounded and a tie is in reach, it may end on either side.
inline void bound_rms_row(const CallView& c, std::span<const double> row, double eps,
                          std::span<const double> values, std::span<double> bounds) {
  const double relative =
      (sum_error(static_cast<int64_t>(row.size())) + 2 * kUnit) / 2 + 2 * kFunction + 2 * kUnit;
  const double factor = rms_factor(row, eps);
  const DType first = c.tensor(c.has("weight") ? "weight" : "x").dtype;
  for (size_t i = 0; i < row.size(); ++i) {
    const double weight = std::abs(at_or(c, "weight", i, 1)), off = kSmallest * factor;
    bounds[i] = std::abs(values[i]) * relative + off * (1 + weight);
    if (!rounds_first(c)) continue;
    const double normal = row[i] * factor, reach = 2 * (std::abs(normal) * relative + off);
    if (rounded(normal - reach, first) != rounded(normal + reach, first)) {
      bounds[i] += 2 * half_step(normal, first) * weight;
    }
  }
}

}  // namespace opmux::verify::operators
