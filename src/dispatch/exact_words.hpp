#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "registry/arguments.hpp"
#include "registry/facts.hpp"

namespace opmux::dispatch {

/// Passes every property of a tensor except its data to `word`.
template <class Word>
void tensor_words(const TensorView& tensor, Word&& word) {
  word(int64_t{tensor.dtype().packed()});
  word(static_cast<uint32_t>(tensor.device().type) | int64_t{tensor.device().id} << 32);
  word(registry::alignment_of(tensor));
  word(int64_t{tensor.rank()});
  for (const int64_t dim : tensor.shape()) word(dim);
  for (const int64_t stride : tensor.strides()) word(stride);
}

/// Passes the contents of a string or list to `word`; its address does not matter.
template <class Word>
void list_words(ArgTag tag, const opmux_list& list, Word&& word) {
  word(static_cast<int64_t>(list.size));
  if (tag == ArgTag::string) {
    std::string_view text(static_cast<const char*>(list.data), list.size);
    while (!text.empty()) {
      int64_t packed = 0;
      const size_t taken = text.size() < sizeof packed ? text.size() : sizeof packed;
      std::memcpy(&packed, text.data(), taken);
      word(packed);
      text.remove_prefix(taken);
    }
    return;
  }
  for (uint64_t i = 0; i < list.size; ++i) {
    if (tag == ArgTag::integer_list) {
      word(static_cast<const int64_t*>(list.data)[i]);
    } else {
      tensor_words(*static_cast<const TensorView* const*>(list.data)[i], word);
    }
  }
}

/// Passes to `word` everything about arguments that a kernel can know without reading tensor data:
/// kinds, shapes, strides, alignments, scalars, and the contents of strings and lists.
template <class Word>
void exact_words(const registry::Arguments& arguments, Word&& word) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const ArgTag tag = arguments.tags[i];
    word(static_cast<int64_t>(tag));
    if (tag == ArgTag::none) continue;
    if (tag == ArgTag::tensor) {
      tensor_words(*arguments.values[i].tensor, word);
    } else if (tag >= ArgTag::string) {
      list_words(tag, *arguments.values[i].list, word);
    } else {
      word(std::bit_cast<int64_t>(arguments.values[i]));
    }
  }
}

}  // namespace opmux::dispatch
