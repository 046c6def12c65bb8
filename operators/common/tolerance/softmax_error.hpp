#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// The relative error of each weight exp(s x - m) / sum. An absolute error of the exponent becomes
/// a relative error of the exponential, and the sum has the weighted mean of these errors.
inline std::vector<double> softmax_error(std::span<const double> x, double scale) {
  double largest = -INFINITY, sum = 0, in_sum = 0;
  for (const double value : x) largest = std::max(largest, scale * value);
  std::vector<double> error(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double power = std::exp(scale * x[i] - largest);
    if (!std::isinf(x[i])) {
      error[i] = 2 * kUnit * (std::abs(scale * x[i]) + std::abs(largest));
    }
    sum += power;
    in_sum += power * error[i];
  }
  const double always =
      in_sum / sum + sum_error(static_cast<int64_t>(x.size())) + 2 * kFunction + 4 * kUnit;
  for (double& value : error) value += always;
  return error;
}

}  // namespace opmux::verify::operators
