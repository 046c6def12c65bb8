#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux::record {

/// The lowest and highest offset of a strided tensor's elements, relative to its first element.
struct ElementRange {
  int64_t lowest = 0, highest = 0;  ///< in elements
};

/// Computes the range. False on integer overflow.
bool range_of(std::span<const int64_t> shape, std::span<const int64_t> strides,
              ElementRange& range);

/// The strides of a row-major tensor without gaps.
std::vector<int64_t> packed_strides(std::span<const int64_t> shape);

/// Copies elements of `size` bytes, row-major, from a tensor with strides to memory without gaps.
void gather(const std::byte* first, std::span<const int64_t> shape,
            std::span<const int64_t> strides, size_t size, std::byte* packed);
/// Copies the elements back: the inverse of gather().
void scatter(const std::byte* packed, std::span<const int64_t> shape,
             std::span<const int64_t> strides, size_t size, std::byte* first);

/// Returns the elements of a view in CPU memory, row-major without gaps.
std::vector<std::byte> elements_of(const TensorView& view);

}  // namespace opmux::record
