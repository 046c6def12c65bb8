#include "failing_memory.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stddef.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "forked.hpp"

namespace {

using opmux::test::Failing;

thread_local constinit uint64_t left = 0;  ///< allocations until one fails, that one included
thread_local constinit uint64_t failed = 0;
thread_local constinit bool lasting = false;
std::atomic<int64_t> in_use{0};

void* place[48];
int place_depth = 0;

/// Whether the allocation that the calling thread is making fails.
bool fails() {
  if (left == 0) return false;
  if (left > 1) {
    --left;
    return false;
  }
  const bool again = lasting;
  left = 0;  // backtrace() may allocate
  if (failed++ == 0) place_depth = backtrace(place, 48);
  left = again ? 1 : 0;
  errno = ENOMEM;
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) in_use.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

}  // namespace

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPMUX_MALLOC_IS_SANITIZED
#endif
#endif

#ifndef OPMUX_MALLOC_IS_SANITIZED

// Definitions in the program override those of the C library for every library in the process. The
// operators new of the C++ library call them, and throw std::bad_alloc for a null pointer.
extern "C" {

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): names of the C library
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

void* malloc(size_t size) noexcept { return fails() ? nullptr : counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) noexcept {
  return fails() ? nullptr : counted(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) noexcept {
  if (fails()) return nullptr;
  void* const moved = __libc_realloc(memory, size);
  if (memory == nullptr) return counted(moved);
  if (moved == nullptr && size == 0) in_use.fetch_sub(1, std::memory_order_relaxed);
  return moved;
}
void* memalign(size_t alignment, size_t size) noexcept {
  return fails() ? nullptr : counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}
void free(void* memory) noexcept {
  if (memory != nullptr) in_use.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}

// Allocations of the loader and of constructors do not fail: an exception that a constructor throws
// leaves the loader of the C library locked, and so does dlclose() if it cannot allocate.
void* dlopen(const char* path, int flags) noexcept {
  static const auto real = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  const uint64_t kept = std::exchange(left, 0);
  void* const library = real(path, flags);
  left = kept;
  return library;
}
int dlclose(void* library) noexcept {
  static const auto real = reinterpret_cast<decltype(&dlclose)>(dlsym(RTLD_NEXT, "dlclose"));
  const uint64_t kept = std::exchange(left, 0);
  const int result = real(library);
  left = kept;
  return result;
}

}  // extern "C"

#else

// The sanitizer owns malloc, so only the operators new can fail.
namespace {

void* make(size_t size, size_t alignment) {
  if (fails()) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) throw std::bad_alloc();
  return counted(memory);
}

void* make_quietly(size_t size, size_t alignment) noexcept try {
  return make(size, alignment);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void drop(void* memory) {
  if (memory != nullptr) in_use.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

constexpr size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(size_t size) { return make(size, kUsual); }
void* operator new[](size_t size) { return make(size, kUsual); }
void* operator new(size_t size, std::align_val_t alignment) {
  return make(size, size_t(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return make(size, size_t(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return make_quietly(size, kUsual);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly(size, size_t(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly(size, size_t(alignment));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return make_quietly(size, kUsual);
}
void operator delete(void* memory) noexcept { drop(memory); }
void operator delete[](void* memory) noexcept { drop(memory); }
void operator delete(void* memory, size_t) noexcept { drop(memory); }
void operator delete[](void* memory, size_t) noexcept { drop(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { drop(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { drop(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { drop(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { drop(memory); }

#endif

namespace opmux::test {

void fail_allocation(uint64_t n, Failing failing) {
  lasting = failing == Failing::lasting;
  failed = 0;
  left = n;
}

uint64_t stop_failing() {
  left = 0;
  return failed;
}

bool memory_is_sanitized() {
#ifdef OPMUX_MALLOC_IS_SANITIZED
  return true;
#else
  return false;
#endif
}

int64_t blocks_in_use() { return in_use.load(std::memory_order_relaxed); }

void print_failed_allocation() {
  backtrace_symbols_fd(place, place_depth, STDERR_FILENO);
  dprintf(STDERR_FILENO, "now:\n");
  void* here[48];
  backtrace_symbols_fd(here, backtrace(here, 48), STDERR_FILENO);
}

}  // namespace opmux::test
