#pragma once

#include <cstdint>

namespace opmux::dispatch {

/// Extends a hash by one more word.
constexpr uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

}  // namespace opmux::dispatch
