#include "conformance/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace opmux::conformance {
namespace {

constexpr size_t kCapacity = size_t{64} << 20;  ///< of addresses; pages come when touched

size_t page() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

Arena::Arena() {
  void* all = mmap(nullptr, kCapacity + 2 * page(), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(all) + page();
  end_ = begin_ + kCapacity;
  if (mprotect(begin_, kCapacity, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Arena::Arena(Arena&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), end_(std::exchange(other.end_, nullptr)) {}

Arena::~Arena() {
  if (begin_ != nullptr) munmap(begin_ - page(), kCapacity + 2 * page());
}

}  // namespace opmux::conformance
