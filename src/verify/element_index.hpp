#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace opmux::verify {

/// Converts a row-major element number to the index in a tensor of this shape.
inline std::vector<int64_t> index_of(std::span<const int64_t> shape, size_t element) {
  std::vector<int64_t> index(shape.size());
  auto left = static_cast<int64_t>(element);
  for (size_t i = shape.size(); i > 0; --i) {
    index[i - 1] = left % shape[i - 1];
    left /= shape[i - 1];
  }
  return index;
}

}  // namespace opmux::verify
