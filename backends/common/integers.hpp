// Element access to i32 and i64 tensors (indices, lengths).
#pragma once

#include <opmux/abi.h>

#include <cstdint>

#include "backends/common/rows.hpp"

namespace opmux::backends {

// The integer `offset` elements after the tensor's first element.
inline int64_t integer_at(const opmux_tensor& tensor, int64_t offset) {
  return tensor.dtype.bits == 32 ? first_element<const int32_t>(tensor)[offset]
                                 : first_element<const int64_t>(tensor)[offset];
}

inline void put_integer(const opmux_tensor& tensor, int64_t offset, int64_t value) {
  if (tensor.dtype.bits == 32) {
    first_element<int32_t>(tensor)[offset] = static_cast<int32_t>(value);
  } else {
    first_element<int64_t>(tensor)[offset] = value;
  }
}

}  // namespace opmux::backends
