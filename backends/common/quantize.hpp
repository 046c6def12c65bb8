// Quantizes rows of floats to 8-bit integers and a scale. All backends use this definition, so that
// they produce the same integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace opmux::backends {

// The scale that maps the largest magnitude of a row to `most`; 0 if all elements are zero, NaN if
// the row contains a NaN or an infinity.
inline float row_scale(const float* row, int64_t count, float most = 127) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(row[i]));
  }
  return largest / most;
}

// value / scale, rounded to the nearest integer (ties to even) and clamped to [-128, 127]. A NaN
// quotient, including 0 / 0, gives 0.
inline int8_t quantize(float value, float scale) {
  const float quotient = value / scale;
  if (std::isnan(quotient)) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(quotient), -128.0f, 127.0f));
}

}  // namespace opmux::backends
