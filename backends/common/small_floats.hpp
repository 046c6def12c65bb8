// Floats of 8 and 4 bits. All backends use these definitions, so that they read and quantize the
// same numbers.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace opmux::backends {

// A float type of 8 bits: sign, exponent, fraction.
struct Float8 {
  int fraction_bits;
  int bias;       // of the exponent
  float largest;  // largest finite number
  bool infinities;
  bool negative_zero;  // without it, the bits of negative zero mean NaN
};

// The description of a float type of 8 bits; null for other types.
inline const Float8* float8_of(opmux_dtype dtype) {
  static constexpr Float8 kE4m3fn{3, 7, 448, false, true}, kE4m3fnuz{3, 8, 240, false, false},
      kE5m2{2, 15, 57344, true, true}, kE5m2fnuz{2, 16, 57344, false, false};
  if (dtype.bits != 8 || dtype.lanes != 1) return nullptr;
  switch (dtype.code) {
    case OPMUX_DTYPE_FLOAT8_E4M3FN: return &kE4m3fn;
    case OPMUX_DTYPE_FLOAT8_E4M3FNUZ: return &kE4m3fnuz;
    case OPMUX_DTYPE_FLOAT8_E5M2: return &kE5m2;
    case OPMUX_DTYPE_FLOAT8_E5M2FNUZ: return &kE5m2fnuz;
    default: return nullptr;
  }
}

inline float to_float(const Float8& type, uint8_t bits) {
  const int magnitude = bits & 0x7f;
  const bool nan = !type.negative_zero ? bits == 0x80
                   : type.infinities   ? magnitude > 0x7c
                                       : magnitude == 0x7f;
  if (nan) return std::numeric_limits<float>::quiet_NaN();
  const int fraction = magnitude & ((1 << type.fraction_bits) - 1);
  const int exponent = magnitude >> type.fraction_bits;
  float value = 0;
  if (type.infinities && magnitude == 0x7c) {
    value = std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(float(fraction), 1 - type.bias - type.fraction_bits);
  } else {
    value = std::ldexp(float((1 << type.fraction_bits) + fraction),
                       exponent - type.bias - type.fraction_bits);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

// The nearest number of the type, ties to even; the largest number if the value is beyond it. NaN
// stays NaN.
inline float rounded(const Float8& type, float value) {
  if (std::isnan(value) || value == 0) return value;
  if (std::fabs(value) >= type.largest) return std::copysign(type.largest, value);
  const int exponent = std::max(std::ilogb(value), 1 - type.bias);
  const float quantum = std::ldexp(1.0f, exponent - type.fraction_bits);
  // Rounding up may give the next number after the largest.
  return std::copysign(std::min(std::nearbyint(std::fabs(value) / quantum) * quantum, type.largest),
                       value);
}

// value / scale as a number of the type, rounded to nearest even and limited to its largest number.
// 0 / 0 gives 0; a NaN gives NaN.
inline float quantize(const Float8& type, float value, float scale) {
  if (value == 0 && scale == 0) return 0;
  return rounded(type, value / scale);
}

// A float of 4 bits (e2m1fn), given in the low bits.
inline float float4(int bits) {
  constexpr std::array<float, 8> kMagnitudes{0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const float value = kMagnitudes[size_t(bits & 7)];
  return (bits & 8) != 0 ? -value : value;
}

}  // namespace opmux::backends
