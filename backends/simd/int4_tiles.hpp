// Where inputs and 4-bit weights stand while they are multiplied.
#pragma once

#include <algorithm>
#include <cstddef>

namespace opmux::backends::simd {

// A byte of weights holds an even and an odd input. Both sides of the product keep the even ones of
// a tile before its odd ones, so that nothing is interleaved; both parts are filled up with zeros
// to whole vectors of every target.
inline constexpr size_t kTileBytes = 512, kMostLanes = 16;

constexpr size_t filled_up(size_t bytes) {
  return (bytes + kMostLanes - 1) / kMostLanes * kMostLanes;
}

// Calls tile(first byte, bytes, where it begins in a row of floats).
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
