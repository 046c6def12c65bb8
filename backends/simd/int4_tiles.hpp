// Memory layout of inputs and 4-bit weights during multiplication.
#pragma once

#include <algorithm>
#include <cstddef>

namespace opmux::backends::simd {

// A byte of weights holds an even and an odd input. Both operands store the even inputs of a tile
// before its odd inputs, so that nothing has to be interleaved. Both parts are padded with zeros to
// whole vectors of the widest target.
inline constexpr size_t kTileBytes = 512, kMostLanes = 16;

constexpr size_t filled_up(size_t bytes) {
  return (bytes + kMostLanes - 1) / kMostLanes * kMostLanes;
}

// Calls tile(first byte, number of bytes, offset of the tile in a row of floats) for each tile.
template <class Tile>
void for_each_tile(size_t bytes, const Tile& tile) {
  for (size_t first = 0, at = 0; first < bytes; first += kTileBytes, at += 2 * kTileBytes) {
    tile(first, std::min(kTileBytes, bytes - first), at);
  }
}

constexpr size_t row_floats(size_t bytes) {
  return bytes / kTileBytes * 2 * kTileBytes + 2 * filled_up(bytes % kTileBytes);
}

}  // namespace opmux::backends::simd
