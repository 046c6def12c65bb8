// Attention of up to sixteen rows of queries to the bf16 keys and values of one head, on tiles.
//
// Sixteen keys are one operand as they lie in memory, and queries the other, so that a product has
// a row per key and a column per query. There are as many columns as the next power of two: lane i
// of a vector of logits belongs to row i % width, and no lane is idle where heads share keys.
#pragma once

#include <cstdint>

#include "backends/common/element.hpp"
#include "backends/common/visible_keys.hpp"
#include "backends/simd/amx.hpp"

namespace opmux::backends::simd {

inline constexpr int64_t kTileBlock = 64;  // keys whose logits are kept
inline constexpr int64_t kMostTileDepth = 256;

// Where the keys and values of a block lie, sixteen by sixteen; null where no row sees one.
struct TileKeys {
  const BF16 *keys[kTileBlock / kTileSide], *values[kTileBlock / kTileSide];
  int64_t key_stride, value_stride;  // in elements
  int64_t first, last;               // those that a row sees, counted from the block's first
};

// Has the tiles of its thread while it lives.
class AttendTiles {
 public:
  // Both depths are multiples of 32; `scale` multiplies the products of queries and keys.
  AttendTiles(int64_t rows, int64_t depth, int64_t value_depth, float scale);
  ~AttendTiles();
  AttendTiles(const AttendTiles&) = delete;
  AttendTiles& operator=(const AttendTiles&) = delete;

  // Row r: its query, and the keys that it sees.
  void set_row(int64_t r, const BF16* q, KeyRange range);
  // Keys from `first` on, one block; blocks come in rising order. `next` is on its way into the
  // cache meanwhile.
  void attend(int64_t first, const TileKeys& keys, const TileKeys& next);
  // Writes row r; `sink` is one more logit. False if there is NaN in it.
  bool finish(int64_t r, float sink, BF16* y) const;

 private:
  void multiply_panels(const TileKeys& keys);
  void multiply_block(const TileKeys& keys);
  bool all_is_seen(int64_t first) const;
  uint16_t seen_lanes(int64_t first, int64_t at) const;
  void weigh(int64_t first);
  void turn_weights();
  void pack_values(const TileKeys& keys);
  void scale_sums();
  // Fewer rows gain nothing from tiles of values, which have to be packed.
  bool is_narrow() const { return width_ <= 4; }
  void add_packed_values();
  void add_values(const TileKeys& keys, const TileKeys& next);
  template <int kRows>
  void add_values_of(const TileKeys& keys, const TileKeys& next);
  template <int kRows, int kVectors>
  void add_columns(int64_t column, const TileKeys& keys, const TileKeys& next);

  static constexpr int64_t kMostChunks = kTileBlock / kTileDepth;

  alignas(64) uint32_t q_[kMostTileDepth / 2 * kTileSide];  // pairs of elements, of all rows
  alignas(64) float logits_[kTileBlock * kTileSide];        // by key, then by row
  alignas(64) BF16 weights_[kMostChunks * kTileSide * kTileDepth];  // by chunk of keys, row, key
  alignas(64) uint32_t values_[kTileBlock / 2 * kMostTileDepth];    // by chunk, tile, pair of keys
  alignas(64) float sums_[kMostTileDepth * kTileSide];              // by tile, then by row
  alignas(64) float total_[kTileSide] = {};  // of the weights of row i % width
  alignas(64) float largest_[kTileSide];     // logit of row i % width by now
  alignas(64) float factor_[kTileSide];      // of what was summed before this block, likewise
  alignas(64) int32_t first_[kTileSide] = {}, last_[kTileSide] = {};  // likewise
  int64_t rows_, width_, depth_, value_depth_;
  int64_t chunks_ = 0;  // of 32 keys, in this block
  float scale_;         // logits are those of powers of 2
};

}  // namespace opmux::backends::simd
