// 4-bit integers, two in a byte: the even one in the low half.
#pragma once

#include <cstdint>

namespace opmux::backends {

// The k-th of a row whose bytes are `stride` apart: 0 to 15.
inline int nibble(const uint8_t* row, int64_t stride, int64_t k) {
  const int byte = row[k / 2 * stride];
  return k % 2 == 0 ? byte & 15 : byte >> 4;
}

}  // namespace opmux::backends
