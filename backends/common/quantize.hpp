// Rows of floats as 8-bit integers times a scale, defined so that every backend gets the same ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace opmux::backends {

// The scale that maps the largest magnitude of a row to 127; 0 if there are only zeros, NaN if the
// row holds a NaN or an infinity.
inline float row_scale(const float* row, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(row[i]));
  }
  return largest / 127;
}

// value / scale to the nearest integer, ties to even, within [-128, 127]. NaN, also that of 0 / 0,
// gives 0.
inline int8_t quantize(float value, float scale) {
  const float quotient = value / scale;
  if (std::isnan(quotient)) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(quotient), -128.0f, 127.0f));
}

}  // namespace opmux::backends
