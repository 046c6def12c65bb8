#include "allocations.hpp"

#include <errno.h>
#include <link.h>
#include <stddef.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

namespace {

std::atomic<uint64_t> allocations, apart, frees;

struct Range {
  uintptr_t first, last;
};
std::array<Range, 64> apart_ranges;  // An array, because vectors allocate.
size_t ranges = 0;

void count_one(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

void count_for(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  const bool other =
      std::any_of(apart_ranges.begin(), apart_ranges.begin() + ranges,
                  [at](const Range& range) { return at >= range.first && at < range.last; });
  count_one(other ? apart : allocations);
}

int add_ranges(dl_phdr_info* info, size_t, void* words) {
  const std::string_view name = info->dlpi_name;
  for (const std::string_view word :
       *static_cast<std::initializer_list<std::string_view>*>(words)) {
    if (name.find(word) == name.npos) continue;
    for (int i = 0; i < info->dlpi_phnum && ranges < apart_ranges.size(); ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const uintptr_t first = info->dlpi_addr + segment.p_vaddr;
      apart_ranges[ranges++] = {first, first + segment.p_memsz};
    }
  }
  return 0;
}

}  // namespace

// Definitions in the program override those of the C library for every library in the process.
extern "C" {

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): names of the C library
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

void* malloc(size_t size) noexcept {
  count_for(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  count_for(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  count_for(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  count_for(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  count_for(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept {
  count_one(frees);
  __libc_free(memory);
}

}  // extern "C"

// Counts for the caller of new, not for the C++ library, which would call malloc.
void* operator new(size_t size) {
  count_for(__builtin_return_address(0));
  void* const memory = __libc_malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace opmux::test {

uint64_t allocations_so_far() { return allocations.load(std::memory_order_relaxed); }
uint64_t allocations_apart() { return apart.load(std::memory_order_relaxed); }
uint64_t frees_so_far() { return frees.load(std::memory_order_relaxed); }

void count_apart(std::initializer_list<std::string_view> libraries) {
  ranges = 0;
  dl_iterate_phdr(add_ranges, &libraries);
}

}  // namespace opmux::test
