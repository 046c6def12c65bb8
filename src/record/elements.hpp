#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux::record {

/// Where the elements of a strided tensor lie, counted from its first one.
struct ElementRange {
  int64_t lowest = 0, highest = 0;  ///< in elements
};

/// Nothing (false) if the numbers do not fit.
bool range_of(std::span<const int64_t> shape, std::span<const int64_t> strides,
              ElementRange& range);

/// Row-major without gaps.
std::vector<int64_t> packed_strides(std::span<const int64_t> shape);

/// Copies elements of `size` bytes, row-major, from a tensor with strides to memory without gaps.
void gather(const std::byte* first, std::span<const int64_t> shape,
            std::span<const int64_t> strides, size_t size, std::byte* packed);
/// And back.
void scatter(const std::byte* packed, std::span<const int64_t> shape,
             std::span<const int64_t> strides, size_t size, std::byte* first);

/// The elements of a view that the CPU can read, row-major without gaps.
std::vector<std::byte> elements_of(const TensorView& view);

}  // namespace opmux::record
