// Activation functions of gated layers, in f32.
#pragma once

#include <cmath>
#include <numbers>

namespace opmux::backends {

inline float silu(float v) { return v / (1 + std::exp(-v)); }

// Both avoid cancellation for large negative values: 1 + erf(v) is computed as erfc(-v), and (1 +
// tanh(u)) / 2 as 1 / (1 + exp(-2u)).
inline float gelu(float v) { return 0.5f * v * std::erfc(-v / std::numbers::sqrt2_v<float>); }

inline float gelu_tanh(float v) {
  constexpr float kSlope = 0.797884560802865f;  // sqrt(2 / pi)
  const float u = kSlope * (v + 0.044715f * v * v * v);
  return v / (1 + std::exp(-2 * u));
}

}  // namespace opmux::backends
