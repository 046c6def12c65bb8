// 4-bit integers packed two per byte: even indices in the low half, odd ones in the high half.
#pragma once

#include <cstdint>

namespace opmux::backends {

// Element k (0 to 15) of a row whose bytes are `stride` apart.
inline int nibble(const uint8_t* row, int64_t stride, int64_t k) {
  const int byte = row[k / 2 * stride];
  return k % 2 == 0 ? byte & 15 : byte >> 4;
}

}  // namespace opmux::backends
