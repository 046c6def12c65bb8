#include "record/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <opmux/abi.h>

namespace opmux::record {
namespace {

/// Calls visit(offset in elements, count, stride) for each row of the last dimension.
template <class Visit>
void for_each_row(std::span<const int64_t> shape, std::span<const int64_t> strides, Visit&& visit) {
  if (std::ranges::find(shape, 0) != shape.end()) return;
  const size_t outer = shape.empty() ? 0 : shape.size() - 1;
  const int64_t count = shape.empty() ? 1 : shape[outer];
  const int64_t stride = shape.empty() ? 1 : strides[outer];
  std::array<int64_t, OPMUX_MAX_RANK> index{};
  for (int64_t offset = 0;;) {
    visit(offset, count, stride);
    size_t i = outer;
    for (; i > 0; --i) {
      offset += strides[i - 1];
      if (++index[i - 1] < shape[i - 1]) break;
      offset -= index[i - 1] * strides[i - 1];
      index[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

/// Calls copy(byte offset in the strided tensor, byte offset in packed memory, bytes) for each
/// contiguous piece.
template <class Copy>
void for_each_piece(std::span<const int64_t> shape, std::span<const int64_t> strides, size_t size,
                    Copy&& copy) {
  const auto bytes = static_cast<int64_t>(size);
  int64_t packed = 0;
  for_each_row(shape, strides, [&](int64_t offset, int64_t count, int64_t stride) {
    const int64_t pieces = stride == 1 ? 1 : count;
    const int64_t piece = stride == 1 ? count * bytes : bytes;
    for (int64_t i = 0; i < pieces; ++i, packed += piece) {
      copy((offset + i * stride) * bytes, packed, static_cast<size_t>(piece));
    }
  });
}

}  // namespace

bool range_of(std::span<const int64_t> shape, std::span<const int64_t> strides,
              ElementRange& range) {
  range = {};
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach)) return false;
    int64_t& end = reach < 0 ? range.lowest : range.highest;
    if (__builtin_add_overflow(end, reach, &end)) return false;
  }
  return true;
}

std::vector<int64_t> packed_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i > 0; --i) {
    strides[i - 1] = step;
    step *= std::max<int64_t>(shape[i - 1], 1);
  }
  return strides;
}

void gather(const std::byte* first, std::span<const int64_t> shape,
            std::span<const int64_t> strides, size_t size, std::byte* packed) {
  for_each_piece(shape, strides, size, [&](int64_t from, int64_t to, size_t bytes) {
    std::memcpy(packed + to, first + from, bytes);
  });
}

void scatter(const std::byte* packed, std::span<const int64_t> shape,
             std::span<const int64_t> strides, size_t size, std::byte* first) {
  for_each_piece(shape, strides, size, [&](int64_t to, int64_t from, size_t bytes) {
    std::memcpy(first + to, packed + from, bytes);
  });
}

std::vector<std::byte> elements_of(const TensorView& view) {
  const auto size = static_cast<size_t>(view.dtype().size_bytes());
  std::vector<std::byte> packed(static_cast<size_t>(view.elements()) * size);
  gather(static_cast<const std::byte*>(view.data()), view.shape(), view.strides(), size,
         packed.data());
  return packed;
}

}  // namespace opmux::record
