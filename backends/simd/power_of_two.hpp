// 2^f for f in [-1/2, 1/2] as a polynomial, accurate to two units in the last place of f32.
#pragma once

#include <immintrin.h>

namespace opmux::backends::simd {

// Coefficients of f^5, f^4, ... f^0.
inline constexpr float kPowerOfTwo[] = {0.0013276472f, 0.009675541f, 0.05550713f,
                                        0.2402212f,    0.69314694f,  1.0000001f};

__attribute__((target("avx512f"))) inline __m512 power_of_fraction(__m512 f) {
  __m512 power = _mm512_set1_ps(kPowerOfTwo[0]);
  power = _mm512_fmadd_ps(power, f, _mm512_set1_ps(kPowerOfTwo[1]));
  power = _mm512_fmadd_ps(power, f, _mm512_set1_ps(kPowerOfTwo[2]));
  power = _mm512_fmadd_ps(power, f, _mm512_set1_ps(kPowerOfTwo[3]));
  power = _mm512_fmadd_ps(power, f, _mm512_set1_ps(kPowerOfTwo[4]));
  return _mm512_fmadd_ps(power, f, _mm512_set1_ps(kPowerOfTwo[5]));
}

}  // namespace opmux::backends::simd
