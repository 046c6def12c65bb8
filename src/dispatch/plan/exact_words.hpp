#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "schema/arguments.hpp"
#include "schema/facts.hpp"

/// Compares and copies 16 bytes at a time in SIMD registers that every x86-64 and arm64 CPU has.
namespace opmux::dispatch {

using WordPair = uint64_t __attribute__((vector_size(16)));

inline WordPair load_pair(const void* from) {
  WordPair pair;
  std::memcpy(&pair, from, sizeof pair);
  return pair;
}

/// Loads from memory aligned to 16 bytes: shapes and strides of views, and the copies in plans.
inline WordPair load_aligned(const void* from) {
  using Aliasing = WordPair __attribute__((may_alias));
  return *static_cast<const Aliasing*>(from);
}

inline void store_aligned(WordPair pair, void* to) {
  using Aliasing = WordPair __attribute__((may_alias));
  *static_cast<Aliasing*>(to) = pair;
}

inline bool is_zero(WordPair pair) { return (pair[0] | pair[1]) == 0; }

/// Passes every property of a tensor except its data to `word`.
template <class Word>
void tensor_words(const TensorView& tensor, Word&& word) {
  word(int64_t{tensor.dtype().packed()});
  word(static_cast<uint32_t>(tensor.device().type) | int64_t{tensor.device().id} << 32);
  word(schema::alignment_of(tensor));
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
void exact_words(const schema::Arguments& arguments, Word&& word) {
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

/// Maximum number of tensors in a call whose arguments are passed in registers.
inline constexpr size_t kMaxLayouts = 4;

/// A layout number that no view has.
inline constexpr uint64_t kNoLayout = ~uint64_t{0};

/// A direct-mapped cache of the layout numbers that the plans of a thread have accepted. A program
/// that alternates between a few batch sizes passes the same layouts again.
class MetLayouts {
 public:
  MetLayouts() : sets_(static_cast<Set*>(std::calloc(kSets, sizeof(Set)))) {
    if (sets_ == nullptr) throw std::bad_alloc();
  }
  ~MetLayouts() { std::free(sets_); }
  MetLayouts(const MetLayouts&) = delete;
  MetLayouts& operator=(const MetLayouts&) = delete;

  /// `plan_id` identifies the class for which the layouts were accepted, `key` the plan and what it
  /// was filled in for; see CachedPlan::met_key.
  template <int kTensors>
  [[gnu::always_inline]] bool has(const uint64_t* layouts, uint64_t plan_id, uint64_t key) const {
    const Set& set = sets_[place(layouts, key)];
    uint64_t differs = (set.plan_id ^ plan_id) | (set.key ^ key);
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) differs |= set.layouts[i] ^ layouts[i];
    return differs == 0;
  }

  template <int kTensors>
  [[gnu::always_inline]] void add(const uint64_t* layouts, uint64_t plan_id, uint64_t key) {
    Set& set = sets_[place(layouts, key)];
    set.plan_id = plan_id;
    set.key = key;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) set.layouts[i] = layouts[i];
  }

 private:
  static constexpr size_t kSets = 512;  ///< 24 kB, so that the table stays in the cache

  struct Set {
    uint64_t layouts[kMaxLayouts];
    uint64_t plan_id, key;
  };
  /// Index of the set. Layouts are numbered in groups of four per call, so the group number of the
  /// first layout tells calls apart.
  static size_t place(const uint64_t* layouts, uint64_t key) {
    return (layouts[0] / kMaxLayouts + key * 61) % kSets;
  }

  Set* const sets_;
};

}  // namespace opmux::dispatch
