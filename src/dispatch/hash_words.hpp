#pragma once

#include <cstdint>

namespace opmux::dispatch {

/// The hash of some words and one more.
constexpr uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

}  // namespace opmux::dispatch
