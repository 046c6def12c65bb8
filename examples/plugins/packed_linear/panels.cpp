#include "panels.hpp"

#include <algorithm>

namespace quarry {

Panels::Panels(const float* weight, int64_t outputs, int64_t inputs, int64_t stride)
    : outputs_(outputs), inputs_(inputs), data_(static_cast<size_t>(count() * kPanel * inputs)) {
  for (int64_t n = 0; n < outputs; ++n) {
    float* to = data_.data() + n / kPanel * kPanel * inputs + n % kPanel;
    for (int64_t k = 0; k < inputs; ++k) to[k * kPanel] = weight[n * stride + k];
  }
}

std::span<const float> Panels::panel_of(int64_t panel) const {
  const auto size = static_cast<size_t>(kPanel * inputs_);
  return std::span(data_).subspan(static_cast<size_t>(panel) * size, size);
}

void Panels::multiply(int64_t panel, const Rows& rows, const float* bias) const {
  const std::span<const float> weight = panel_of(panel);
  const int64_t first = panel * kPanel, width = std::min(kPanel, outputs_ - first);
  for (int64_t row = 0; row < rows.count; ++row) {
    float sums[kPanel] = {};
    const float* x = rows.x + row * rows.x_stride;
    for (int64_t k = 0; k < inputs_; ++k) {
      for (int64_t n = 0; n < kPanel; ++n) sums[n] += x[k] * weight[size_t(k * kPanel + n)];
    }
    float* y = rows.y + row * rows.y_stride + first;
    for (int64_t n = 0; n < width; ++n) y[n] = sums[n] + (bias != nullptr ? bias[first + n] : 0);
  }
}

}  // namespace quarry
