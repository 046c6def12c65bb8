#pragma once

#include <cmath>
#include <span>

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// Element i of a vector argument, or `otherwise` if the argument is absent.
inline double at_or(const CallView& c, std::string_view name, size_t i, double otherwise) {
  return c.has(name) ? c.tensor(name).values[i] : otherwise;
}

/// The reciprocal of the root mean square of a row.
inline double rms_factor(std::span<const double> row, double eps) {
  double sum = 0;
  for (const double value : row) sum += value * value;
  return 1 / std::sqrt(sum / static_cast<double>(row.size()) + eps);
}

/// The error added by rounding a normalized value before it is multiplied by the weight. Zero
/// unless the value, within its error, can be rounded to two different numbers.
inline double rounding_between(const CallView& c, double normal, double relative) {
  if (c.integer("round_before_weight", 0) == 0) return 0;
  const DType dtype = c.has("weight") ? c.tensor("weight").dtype : c.tensor("x").dtype;
  return std::abs(rounded(normal * (1 + relative), dtype) -
                  rounded(normal * (1 - relative), dtype));
}

/// True if the call sets `round_before_weight`.
inline bool rounds_first(const CallView& c) { return c.integer("round_before_weight", 0) != 0; }

/// Bounds y = row * factor * weight. Squares are positive, so the error of their sum is relative,
/// and the square root halves it. The root, a quotient and two products add one rounding each. An
/// element that is flushed to zero before the multiplication is off by its value. If the normalized
/// value is rounded and a tie is within its error, it may be rounded to either side.
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
