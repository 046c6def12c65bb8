#pragma once

#include <cstdint>
#include <cstring>

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

}  // namespace opmux::dispatch
