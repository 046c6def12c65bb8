// AVX-512 helpers for the AMX kernels. The unmasked forms of some intrinsics start from an
// undefined value, about which g++ warns, so the masked forms are used instead.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "backends/common/element.hpp"
#include "backends/simd/amx.hpp"

namespace opmux::backends::simd {

inline constexpr __mmask16 kAllLanes = 0xffff;
inline constexpr float kLog2E = 1.44269504f;

OPMUX_TILES inline __m512i lanes() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

OPMUX_TILES inline void store_rounded(__m512 first, __m512 second, BF16* to) {
  const __m512bh both = _mm512_cvtne2ps_pbh(second, first);
  std::memcpy(to, &both, sizeof both);
}

}  // namespace opmux::backends::simd
