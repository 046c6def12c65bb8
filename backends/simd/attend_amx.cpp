#include "backends/simd/attend_amx.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/common/attention_options.hpp"
#include "backends/simd/amx_lanes.hpp"

namespace opmux::backends::simd {
namespace {

// Tile registers: 0 and 1 hold products of keys and queries; 2 keys or values; 3 queries; 4 and 5
// sums of values or, if there are few rows, more products; 6 weights or keys; 7 keys or values.
OPMUX_TILES void shape_tiles(int64_t width, bool narrow) {
  TileShapes shapes;
  const auto line = static_cast<uint16_t>(4 * width);
  for (const int tile : {0, 1, 3}) shapes.bytes[tile] = line;
  if (narrow) {
    shapes.bytes[4] = shapes.bytes[5] = line;
  } else {
    for (const int tile : {4, 5, 6}) shapes.rows[tile] = static_cast<uint8_t>(width);
  }
  use_tiles(shapes);
}

// A separate function, because g++ does not apply the target attribute to destructors.
OPMUX_TILES void release_tiles() { _tile_release(); }

}  // namespace

AttendTiles::AttendTiles(int64_t rows, int64_t depth, int64_t value_depth, float scale)
    : rows_(rows),
      width_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)))),
      depth_(depth),
      value_depth_(value_depth),
      scale_(scale * kLog2E) {
  shape_tiles(width_, is_narrow());
  std::fill_n(q_, depth_ / 2 * width_, 0u);
  std::fill_n(sums_, value_depth_ * width_, 0.0f);
  std::fill_n(largest_, kTileSide, kExcluded);
}

AttendTiles::~AttendTiles() { release_tiles(); }

void AttendTiles::set_row(int64_t r, const BF16* q, KeyRange range) {
  for (int64_t pair = 0; pair < depth_ / 2; ++pair) {
    std::memcpy(q_ + pair * width_ + r, q + 2 * pair, sizeof *q_);
  }
  for (int64_t lane = r; lane < kTileSide; lane += width_) {
    first_[lane] = static_cast<int32_t>(range.first);
    last_[lane] = static_cast<int32_t>(range.last);
  }
}

void AttendTiles::attend(int64_t first, const TileKeys& keys, const TileKeys& next) {
  chunks_ = (keys.last + kTileDepth - 1) / kTileDepth;
  if (is_narrow()) {
    multiply_block(keys);
    weigh(first);
    add_values(keys, next);
  } else {
    multiply_panels(keys);
    weigh(first);
    turn_weights();
    pack_values(keys);
    scale_sums();
    add_packed_values();
  }
}

OPMUX_TILES bool AttendTiles::finish(int64_t r, float sink, BF16* y) const {
  const float of_sink = sink * kLog2E, largest = std::max(largest_[r], of_sink);
  const float share = std::exp2(largest_[r] - largest);
  float sum = 0;
  for (int64_t lane = r; lane < kTileSide; lane += width_) sum += total_[lane];
  const float total = sum * share + std::exp2(of_sink - largest);
  const __m512 factor = _mm512_set1_ps(sum == 0 ? 0 : share / total);
  const __m512i lower =
      is_narrow() ? _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
                  : _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
  __mmask16 nan = 0;
  for (int64_t t = 0; t < value_depth_ / kTileSide; t += 2, y += kTileDepth) {
    const __m512 even = _mm512_load_ps(sums_ + (t * width_ + r) * kTileSide);
    const __m512 odd = _mm512_load_ps(sums_ + ((t + 1) * width_ + r) * kTileSide);
    const __m512 a = _mm512_mul_ps(_mm512_permutex2var_ps(even, lower, odd), factor);
    const __m512 b = _mm512_mul_ps(_mm512_permutex2var_ps(even, upper, odd), factor);
    nan |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    store_rounded(a, b, y);
  }
  return nan == 0;
}

}  // namespace opmux::backends::simd
