// The definition of `sample` in integer arithmetic. Integer sums do not depend on the order of
// additions, so every backend draws the same token.
#pragma once

#include <cstdint>
#include <limits>

namespace opmux::backends {

// Coefficients of the power series of 2^-f for f in [0, 1): ln(2)^i / i! * 2^31.
inline constexpr int64_t kSamplingTerms[] = {2147483648, 1488522236, 515882496, 119194166, 20654775,
                                             2863360,    330788,     32755,     2838,      219};

// 2^(-u / 2^24) * 2^40, rounded down to an integer; 0 for u >= 40 * 2^24.
inline uint64_t sampling_power(uint64_t u) {
  if (u >= uint64_t{40} << 24) return 0;
  const int64_t fraction = static_cast<int64_t>(u & 0xffffff);
  int64_t power = kSamplingTerms[9];
  for (int i = 8; i >= 0; --i) power = kSamplingTerms[i] - (power * fraction >> 24);
  return static_cast<uint64_t>(power) << 9 >> (u >> 24);
}

// The weight of one logit: 2^40 for the largest logit, less for smaller ones, 0 for -inf and NaN.
// `slope` is log2(e) / temperature in f32.
inline uint64_t sampling_weight(float logit, float largest, float slope) {
  if (logit == largest) return uint64_t{1} << 40;
  const float below = (largest - logit) * slope * 0x1p24f;
  if (!(below < 40 * 0x1p24f)) return 0;
  return sampling_power(static_cast<uint64_t>(below));
}

inline float sampling_slope(float temperature) { return 1.44269504f / temperature; }

// Maps 64 random bits to a number in [0, total).
inline uint64_t draw_below(uint64_t total, uint64_t bits) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<uint64_t>(Wide{bits} * total >> 64);
}

}  // namespace opmux::backends
