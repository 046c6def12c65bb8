// First half of AttendTiles: from keys to weights.
#include <algorithm>
#include <bit>

#include "backends/common/attention_options.hpp"
#include "backends/simd/amx_lanes.hpp"
#include "backends/simd/attend_amx.hpp"
#include "backends/simd/power_of_two.hpp"

namespace opmux::backends::simd {
namespace {

// 2^t for t <= 0, accurate to two units in the last place of f32. Results that would be subnormal
// are zero, because subnormals take a processor longer than everything else here. NaN stays NaN.
OPMUX_TILES inline __m512 power_of_two(__m512 t) {
  const __m512 least = _mm512_set1_ps(-126);
  const __mmask16 normal = _mm512_cmp_ps_mask(t, least, _CMP_NLT_UQ);
  const __m512 bounded = _mm512_maskz_max_ps(kAllLanes, least, t);
  const __m512 whole = _mm512_maskz_roundscale_ps(kAllLanes, bounded, 0);
  const __m512 part = _mm512_sub_ps(bounded, whole);
  return _mm512_maskz_scalef_ps(normal, power_of_fraction(part), whole);
}

OPMUX_TILES inline __m512 lanes_at_distance(__m512 v, int64_t step) {
  const __m512i other = _mm512_xor_si512(lanes(), _mm512_set1_epi32(static_cast<int>(step)));
  return _mm512_maskz_permutexvar_ps(kAllLanes, other, v);
}

// The maximum over all lanes that belong to the same row, in each of these lanes.
OPMUX_TILES inline __m512 largest_of_row(__m512 v, int64_t width) {
  for (int64_t step = kTileSide / 2; step >= width; step /= 2) {
    v = _mm512_maskz_max_ps(kAllLanes, v, lanes_at_distance(v, step));
  }
  return v;
}

}  // namespace

// Adds in the order of the elements, so that results do not depend on the other rows.
OPMUX_TILES void AttendTiles::multiply_panels(const TileKeys& keys) {
  const int64_t line = 4 * width_, tile = kTileSide * width_;
  const int64_t stride = keys.key_stride * int64_t{sizeof(BF16)};
  for (int64_t panel = 0; panel < 2 * chunks_; panel += 2) {
    // For an absent panel, multiply the other one; its logits are masked out later.
    const BF16* const a = keys.keys[panel] ? keys.keys[panel] : keys.keys[panel + 1];
    const BF16* const b = keys.keys[panel + 1] ? keys.keys[panel + 1] : a;
    if (!a) continue;
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t d = 0; d < depth_; d += kTileDepth) {
      _tile_loadd(3, q_ + d / 2 * width_, line);
      _tile_loadd(2, a + d, stride);
      _tile_dpbf16ps(0, 2, 3);
      _tile_loadd(7, b + d, stride);
      _tile_dpbf16ps(1, 7, 3);
    }
    _tile_stored(0, logits_ + panel * tile, line);
    _tile_stored(1, logits_ + (panel + 1) * tile, line);
  }
}

// Variant for few rows, which uses the tiles that many rows need for values.
OPMUX_TILES void AttendTiles::multiply_block(const TileKeys& keys) {
  const int64_t line = 4 * width_, tile = kTileSide * width_;
  const int64_t stride = keys.key_stride * int64_t{sizeof(BF16)};
  const BF16* panels[kTileBlock / kTileSide];
  for (size_t i = 0; i < std::size(panels); ++i) {
    panels[i] = keys.keys[i] ? keys.keys[i] : keys.keys[keys.first / kTileSide];
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t d = 0; d < depth_; d += kTileDepth) {
    _tile_loadd(3, q_ + d / 2 * width_, line);
    _tile_loadd(2, panels[0] + d, stride);
    _tile_dpbf16ps(0, 2, 3);
    _tile_loadd(6, panels[1] + d, stride);
    _tile_dpbf16ps(1, 6, 3);
    _tile_loadd(7, panels[2] + d, stride);
    _tile_dpbf16ps(4, 7, 3);
    _tile_loadd(2, panels[3] + d, stride);
    _tile_dpbf16ps(5, 2, 3);
  }
  _tile_stored(0, logits_, line);
  _tile_stored(1, logits_ + tile, line);
  _tile_stored(4, logits_ + 2 * tile, line);
  _tile_stored(5, logits_ + 3 * tile, line);
}

bool AttendTiles::all_is_seen(int64_t first) const {
  const int64_t last = first + chunks_ * kTileDepth;
  return std::all_of(first_, first_ + rows_, [&](int64_t f) { return f <= first; }) &&
         std::all_of(last_, last_ + rows_, [&](int64_t l) { return l >= last; });
}

// The lanes of the logits at `at` whose keys their row sees.
OPMUX_TILES inline uint16_t AttendTiles::seen_lanes(int64_t first, int64_t at) const {
  const __m128i shift = _mm_cvtsi32_si128(std::countr_zero(static_cast<uint64_t>(width_)));
  const __m512i place = _mm512_add_epi32(lanes(), _mm512_set1_epi32(static_cast<int>(at)));
  const __m512i key = _mm512_add_epi32(_mm512_maskz_srl_epi32(kAllLanes, place, shift),
                                       _mm512_set1_epi32(static_cast<int>(first)));
  return _mm512_cmpge_epi32_mask(key, _mm512_load_si512(first_)) &
         _mm512_cmplt_epi32_mask(key, _mm512_load_si512(last_));
}

// Converts products to weights relative to the largest logit so far. The maximum may drop a NaN,
// but the sum, and with it the row, still becomes NaN.
OPMUX_TILES void AttendTiles::weigh(int64_t first) {
  const int64_t count = chunks_ * kTileDepth * width_;
  const __m512 scale = _mm512_set1_ps(scale_), before = _mm512_load_ps(largest_);
  const __m512 excluded = _mm512_set1_ps(kExcluded);
  const bool all = all_is_seen(first);
  __m512 largest = before;
  for (int64_t at = 0; at < count; at += kTileSide) {
    const uint16_t seen = all ? kAllLanes : seen_lanes(first, at);
    const __m512 products = _mm512_load_ps(logits_ + at);
    const __m512 logits = _mm512_mask_mul_ps(excluded, seen, products, scale);
    _mm512_store_ps(logits_ + at, logits);
    largest = _mm512_maskz_max_ps(kAllLanes, logits, largest);
  }
  largest = largest_of_row(largest, width_);
  _mm512_store_ps(largest_, largest);
  const __mmask16 any = _mm512_cmp_ps_mask(largest, excluded, _CMP_NEQ_UQ);
  const __m512 shift = _mm512_maskz_mov_ps(any, largest);
  _mm512_store_ps(factor_, power_of_two(_mm512_sub_ps(before, shift)));
  __m512 sum = _mm512_setzero_ps();
  for (int64_t at = 0; at < count; at += kTileSide) {
    const __m512 logits = _mm512_load_ps(logits_ + at);
    const __m512 weights = power_of_two(_mm512_sub_ps(logits, shift));
    _mm512_store_ps(logits_ + at, weights);
    sum = _mm512_add_ps(sum, weights);
  }
  const __m512 total = _mm512_load_ps(total_), factor = _mm512_load_ps(factor_);
  _mm512_store_ps(total_, _mm512_fmadd_ps(total, factor, sum));
}

}  // namespace opmux::backends::simd
