// Second half of AttendTiles: weighted sums of values, on tiles for many rows and in vectors for
// few.
#include <algorithm>
#include <utility>

#include "backends/simd/amx_lanes.hpp"
#include "backends/simd/attend_amx.hpp"

namespace opmux::backends::simd {
namespace {

#define OPMUX_UNROLL _Pragma("GCC unroll 4")

// Splits each pair of vectors into the elements at even and at odd positions.
OPMUX_TILES void part_evens_and_odds(const float* from, float* to, int64_t pairs) {
  const __m512i even = _mm512_add_epi32(lanes(), lanes());
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int64_t i = 0; i < pairs; ++i) {
    const __m512 a = _mm512_load_ps(from + 32 * i), b = _mm512_load_ps(from + 32 * i + 16);
    _mm512_store_ps(to + 16 * i, _mm512_permutex2var_ps(a, even, b));
    _mm512_store_ps(to + 16 * (pairs + i), _mm512_permutex2var_ps(a, odd, b));
  }
}

OPMUX_TILES inline __m512i load_or_zero(const BF16* from, int64_t at) {
  return from ? _mm512_loadu_si512(from + at) : _mm512_setzero_si512();
}

}  // namespace

// Transposes the weights from [key][row] to rows of bf16.
OPMUX_TILES void AttendTiles::turn_weights() {
  alignas(64) float other[kTileDepth * kTileSide];
  for (int64_t c = 0; c < chunks_; ++c) {
    float *from = logits_ + c * kTileDepth * width_, *to = other;
    for (int64_t step = 1; step < width_; step *= 2) {
      part_evens_and_odds(from, to, width_);
      std::swap(from, to);
    }
    for (int64_t r = 0; r < width_; ++r) {
      const __m512 a = _mm512_load_ps(from + r * kTileDepth);
      const __m512 b = _mm512_load_ps(from + r * kTileDepth + kTileSide);
      store_rounded(a, b, weights_ + (c * width_ + r) * kTileDepth);
    }
  }
}

// Interleaves neighbouring keys as pairs. Blocks of four out of 32 columns go alternately to one
// tile and the next; finish() reverses this order.
OPMUX_TILES void AttendTiles::pack_values(const TileKeys& keys) {
  const int64_t tile = kTileSide * kTileSide;
  const auto seen = [&](int64_t key) { return key >= keys.first && key < keys.last; };
  for (int64_t key = 0; key < chunks_ * kTileDepth; key += 2) {
    const BF16* const panel = keys.values[key / kTileSide];
    const int64_t row = key % kTileSide * keys.value_stride;
    const BF16* const first = seen(key) ? panel + row : nullptr;
    const BF16* const second = seen(key + 1) ? panel + row + keys.value_stride : nullptr;
    uint32_t* to = values_ + key / kTileDepth * kTileDepth / 2 * value_depth_ +
                   key % kTileDepth / 2 * kTileSide;
    for (int64_t d = 0; d < value_depth_; d += kTileDepth, to += 2 * tile) {
      const __m512i a = load_or_zero(first, d), b = load_or_zero(second, d);
      _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
      _mm512_store_si512(to + tile, _mm512_unpackhi_epi16(a, b));
    }
  }
}

OPMUX_TILES void AttendTiles::scale_sums() {
  if (std::all_of(factor_, factor_ + rows_, [](float f) { return f == 1; })) return;
  for (int64_t tile = 0; tile < value_depth_ / kTileSide; ++tile) {
    for (int64_t r = 0; r < width_; ++r) {
      float* const at = sums_ + (tile * width_ + r) * kTileSide;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_set1_ps(factor_[r])));
    }
  }
}

OPMUX_TILES void AttendTiles::add_packed_values() {
  const int64_t tile = kTileSide * kTileSide, sums = width_ * kTileSide;
  for (int64_t t = 0; t < value_depth_ / kTileSide; t += 2) {
    _tile_loadd(4, sums_ + t * sums, kTileLine);
    _tile_loadd(5, sums_ + (t + 1) * sums, kTileLine);
    for (int64_t c = 0; c < chunks_; ++c) {
      const uint32_t* const values = values_ + c * kTileDepth / 2 * value_depth_ + t * tile;
      _tile_loadd(6, weights_ + c * width_ * kTileDepth, kTileLine);
      _tile_loadd(2, values, kTileLine);
      _tile_dpbf16ps(4, 6, 2);
      _tile_loadd(7, values + tile, kTileLine);
      _tile_dpbf16ps(5, 6, 7);
    }
    _tile_stored(4, sums_ + t * sums, kTileLine);
    _tile_stored(5, sums_ + (t + 1) * sums, kTileLine);
  }
}

// Adds some columns of all rows. Of 32 columns, those at even positions go to one vector and the
// others to the next; finish() reverses this order.
template <int kRows, int kVectors>
OPMUX_TILES void AttendTiles::add_columns(int64_t column, const TileKeys& keys,
                                          const TileKeys& next) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  float* const sums = sums_ + column * kRows;
  __m512 sum[kRows][kVectors];
  OPMUX_UNROLL for (int r = 0; r < kRows; ++r) {
    OPMUX_UNROLL for (int v = 0; v < kVectors; ++v) {
      const __m512 before = _mm512_load_ps(sums + (v * kRows + r) * kTileSide);
      sum[r][v] = _mm512_mul_ps(before, _mm512_set1_ps(factor_[r]));
    }
  }
  for (int64_t key = keys.first; key < keys.last;) {
    const int64_t panel = key / kTileSide, end = std::min(keys.last, (panel + 1) * kTileSide);
    const BF16* from = keys.values[panel] + key % kTileSide * keys.value_stride + column;
    const BF16* ahead = next.values[panel] ? next.values[panel] + column : from;
    const BF16* key_ahead = next.keys[panel] ? next.keys[panel] + column : from;
    for (; key < end; ++key) {
      __m512 value[kVectors];
      OPMUX_UNROLL for (int v = 0; v < kVectors; v += 2) {
        const __m512i both = _mm512_loadu_si512(from + v * kTileSide);
        value[v] = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAllLanes, both, 16));
        value[v + 1] = _mm512_castsi512_ps(_mm512_and_si512(both, high));
        __builtin_prefetch(ahead + v * kTileSide);
        __builtin_prefetch(key_ahead + v * kTileSide);
      }
      OPMUX_UNROLL for (int r = 0; r < kRows; ++r) {
        const __m512 weight = _mm512_set1_ps(logits_[key * kRows + r]);
        OPMUX_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[r][v] = _mm512_fmadd_ps(weight, value[v], sum[r][v]);
        }
      }
      from += keys.value_stride;
      ahead += next.value_stride;
      key_ahead += next.key_stride;
    }
  }
  OPMUX_UNROLL for (int r = 0; r < kRows; ++r) {
    OPMUX_UNROLL for (int v = 0; v < kVectors; ++v) {
      _mm512_store_ps(sums + (v * kRows + r) * kTileSide, sum[r][v]);
    }
  }
}

template <int kRows>
void AttendTiles::add_values_of(const TileKeys& keys, const TileKeys& next) {
  int64_t column = 0;
  for (; column + 2 * kTileDepth <= value_depth_; column += 2 * kTileDepth) {
    add_columns<kRows, 4>(column, keys, next);
  }
  if (column < value_depth_) add_columns<kRows, 2>(column, keys, next);
}

void AttendTiles::add_values(const TileKeys& keys, const TileKeys& next) {
  if (width_ == 1) return add_values_of<1>(keys, next);
  if (width_ == 2) return add_values_of<2>(keys, next);
  add_values_of<4>(keys, next);
}

}  // namespace opmux::backends::simd
