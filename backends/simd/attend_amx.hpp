// Attention of up to sixteen rows of queries to the bf16 keys and values of one head, on AMX tiles.
//
// Sixteen keys, in place, are one operand and the queries are the other, so that a product has one
// row per key and one column per query. The number of columns, `width`, is the number of rows
// rounded up to a power of two: lane i of a vector of logits belongs to row i % width, so no lane
// is idle where heads share keys.
#pragma once

#include <cstdint>

#include "backends/common/element.hpp"
#include "backends/common/visible_keys.hpp"
#include "backends/simd/amx.hpp"

namespace opmux::backends::simd {

inline constexpr int64_t kTileBlock = 64;  // Keys whose logits are kept.
inline constexpr int64_t kMostTileDepth = 256;

// Addresses of the keys and values of a block, one per sixteen keys; null where no row sees them.
struct TileKeys {
  const BF16 *keys[kTileBlock / kTileSide], *values[kTileBlock / kTileSide];
  int64_t key_stride, value_stride;  // In elements.
  int64_t first, last;               // Keys that some row sees, relative to the start of the block.
};

// Owns the tile registers of its thread during its lifetime.
class AttendTiles {
 public:
  // Both depths must be multiples of 32; `scale` multiplies the products of queries and keys.
  AttendTiles(int64_t rows, int64_t depth, int64_t value_depth, float scale);
  ~AttendTiles();
  AttendTiles(const AttendTiles&) = delete;
  AttendTiles& operator=(const AttendTiles&) = delete;

  // Sets the query of row r and the range of keys that it sees.
  void set_row(int64_t r, const BF16* q, KeyRange range);
  // Processes one block of keys that starts at `first`; blocks must come in ascending order.
  // Prefetches `next` into the cache meanwhile.
  void attend(int64_t first, const TileKeys& keys, const TileKeys& next);
  // Writes row r; `sink` is one more logit. Returns false if the result contains a NaN.
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
  // With few rows, tiles of values do not pay for the packing that they need.
  bool is_narrow() const { return width_ <= 4; }
  void add_packed_values();
  void add_values(const TileKeys& keys, const TileKeys& next);
  template <int kRows>
  void add_values_of(const TileKeys& keys, const TileKeys& next);
  template <int kRows, int kVectors>
  void add_columns(int64_t column, const TileKeys& keys, const TileKeys& next);

  static constexpr int64_t kMostChunks = kTileBlock / kTileDepth;

  alignas(64) uint32_t q_[kMostTileDepth / 2 * kTileSide];          // Pairs of elements, all rows.
  alignas(64) float logits_[kTileBlock * kTileSide];                // By key, then by row.
  alignas(64) BF16 weights_[kMostChunks * kTileSide * kTileDepth];  // By chunk of keys, row, key.
  alignas(64) uint32_t values_[kTileBlock / 2 * kMostTileDepth];    // By chunk, tile, pair of keys.
  alignas(64) float sums_[kMostTileDepth * kTileSide];              // By tile, then by row.
  alignas(64) float total_[kTileSide] = {};  // Sum of the weights of row i % width.
  alignas(64) float largest_[kTileSide];     // Largest logit of row i % width so far.
  alignas(64) float factor_[kTileSide];  // Rescales the sums of earlier blocks of row i % width.
  // Range of keys that row i % width sees.
  alignas(64) int32_t first_[kTileSide] = {}, last_[kTileSide] = {};
  int64_t rows_, width_, depth_, value_depth_;
  int64_t chunks_ = 0;  // Chunks of 32 keys in this block.
  float scale_;         // Includes log2(e), because weights are powers of 2.
};

}  // namespace opmux::backends::simd
