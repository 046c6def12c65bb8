#include <numeric>

#include "operators/common/tolerance/norm_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// The errors that all elements of a row share. The error of the mean is relative to the mean
/// magnitude and is part of every centred value. Through the variance it also changes the factor.
struct RowError {
  double mean = 0, factor = 0;
  double centred = 0;   ///< absolute error of x - mean, without the rounding of the subtraction
  double relative = 0;  ///< relative error of the factor

  RowError(std::span<const double> row, double eps) {
    const auto n = static_cast<double>(row.size());
    const auto count = static_cast<int64_t>(row.size());
    double magnitude = 0, variance = 0, spread = 0;
    for (const double value : row) magnitude += std::abs(value) / n;
    mean = std::accumulate(row.begin(), row.end(), 0.0) / n;
    for (const double value : row) {
      variance += (value - mean) * (value - mean) / n;
      spread += std::abs(value - mean) / n;
    }
    centred = (sum_error(count) + 2 * kUnit) * magnitude;
    factor = 1 / std::sqrt(variance + eps);
    const double off =
        2 * spread * centred + centred * centred + variance * (sum_error(count) + 4 * kUnit);
    relative = off / (variance + eps) / 2 + 2 * kFunction;
  }
};

void bound_layer_norm_row(const CallView& c, std::span<const double> row,
                          std::span<double> bounds) {
  const RowError error(row, c.real("eps", 1e-5));
  for (size_t i = 0; i < row.size(); ++i) {
    const double weight = std::abs(at_or(c, "weight", i, 1));
    const double bias = std::abs(at_or(c, "bias", i, 0));
    const double centred = std::abs(row[i] - error.mean);
    bounds[i] = error.factor * weight *
                    (error.centred + centred * (error.relative + 4 * kUnit) + kSmallest) +
                2 * kUnit * bias + kSmallest * weight;
    // The error is as large as the variance. The only remaining bound is the norm of a normalized
    // row, which is sqrt(H).
    if (error.relative > 0.1) {
      bounds[i] = 2 * std::sqrt(static_cast<double>(row.size())) * weight + kUnit * bias;
    }
  }
}

void bound_layer_norm(const CallView& c, Expected& expected) {
  const std::span<const double> x(c.tensor("x").values);
  const auto width = static_cast<size_t>(c.tensor("x").shape.back());
  for (size_t at = 0; at < x.size(); at += width) {
    bound_layer_norm_row(c, x.subspan(at, width),
                         std::span(expected.of(c, "y").bounds).subspan(at, width));
  }
}

}  // namespace

Bounds layer_norm() { return {.op = "layer_norm", .bound = bound_layer_norm}; }

}  // namespace opmux::verify::operators
