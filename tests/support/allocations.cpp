#include "allocations.hpp"

#include <errno.h>
#include <stddef.h>

#include <atomic>

namespace {

std::atomic<uint64_t> allocations, frees;

void count_one(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// The program's own definitions come before those of the C library, for every library in it.
extern "C" {

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): names of the C library
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

void* malloc(size_t size) noexcept {
  count_one(allocations);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  count_one(allocations);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  count_one(allocations);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  count_one(allocations);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  count_one(allocations);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept {
  count_one(frees);
  __libc_free(memory);
}

}  // extern "C"

namespace opmux::test {

uint64_t allocations_so_far() { return allocations.load(std::memory_order_relaxed); }
uint64_t frees_so_far() { return frees.load(std::memory_order_relaxed); }

}  // namespace opmux::test
