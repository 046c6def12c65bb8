#include "replay/recording.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <opmux/abi.h>

#include "base/text.hpp"

namespace opmux::replay {
namespace {

constexpr std::array<std::string_view, 3> kCauses{"failed", "diverged", "dumped"};
constexpr std::array<std::string_view, 6> kContents{"known",     "written", "unknown",
                                                    "elsewhere", "large",   "result"};

bool row_major(const RecordedTensor& tensor) {
  int64_t step = 1;
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (tensor.shape[i - 1] != 1 && tensor.strides[i - 1] != step) return false;
    if (__builtin_mul_overflow(step, std::max<int64_t>(tensor.shape[i - 1], 1), &step))
      return false;
  }
  return true;
}

std::string tensor_text(const RecordedTensor& tensor) {
  std::string text = base::concat(name_of(tensor.dtype), "[", base::join(tensor.shape, ","), "]");
  if (row_major(tensor)) return text;
  return base::concat(text, "{", base::join(tensor.strides, ","), "}");
}

std::string value_text(const RecordedArgument& argument) {
  switch (argument.tag) {
    case ArgTag::tensor: return tensor_text(argument.tensor);
    case ArgTag::floating: return base::number_text(argument.f64);
    case ArgTag::logical: return argument.i64 != 0 ? "true" : "false";
    case ArgTag::string: return "'" + argument.text + "'";
    case ArgTag::integer_list: return "[" + base::join(argument.list, ",") + "]";
    case ArgTag::none: return "none";
    default: return std::to_string(argument.i64);
  }
}

}  // namespace

std::string_view name_of(Cause cause) { return kCauses[static_cast<size_t>(cause)]; }
std::string_view name_of(Contents contents) { return kContents[static_cast<size_t>(contents)]; }

int64_t RecordedTensor::elements() const {
  int64_t all = 1;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(all, size, &all)) return std::numeric_limits<int64_t>::max();
  }
  return all;
}

const RecordedArgument* Recording::find(std::string_view argument) const {
  const auto found = std::ranges::find(arguments, argument, &RecordedArgument::name);
  return found == arguments.end() ? nullptr : &*found;
}

void Recording::forget_results() {
  for (RecordedArgument& argument : arguments) {
    if (argument.tensor.contents != Contents::result) continue;
    argument.tensor.contents = Contents::written;
    argument.tensor.sha256.clear();
    argument.tensor.bytes.clear();
  }
}

bool Recording::complete() const {
  return std::ranges::all_of(arguments, [](const RecordedArgument& argument) {
    const RecordedTensor& tensor = argument.tensor;
    if (argument.tag != ArgTag::tensor || tensor.contents == Contents::written) return true;
    return !tensor.bytes.empty() || tensor.elements() == 0;
  });
}

std::string Recording::arguments_text() const {
  std::string text;
  for (const RecordedArgument& argument : arguments) {
    if (!text.empty()) text += " ";
    text += argument.name + "=" + value_text(argument);
  }
  return text;
}

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

}  // namespace opmux::replay
