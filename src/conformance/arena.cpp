#include "conformance/arena.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace opmux::conformance {
namespace {

// Reserves only addresses; the kernel allocates pages when they are touched. The guard regions are
// wide, so that a wrong stride does not step over them.
constexpr size_t kCapacity = size_t{64} << 20;
constexpr size_t kGuard = size_t{64} << 20;

}  // namespace

Arena::Arena() {
  void* all = mmap(nullptr, kCapacity + 2 * kGuard, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(all) + kGuard;
  end_ = begin_ + kCapacity;
  if (mprotect(begin_, kCapacity, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Arena::Arena(Arena&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), end_(std::exchange(other.end_, nullptr)) {}

Arena::~Arena() {
  if (begin_ != nullptr) munmap(begin_ - kGuard, kCapacity + 2 * kGuard);
}

}  // namespace opmux::conformance
