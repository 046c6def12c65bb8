#include "conformance/arena.hpp"

#include <sys/mman.h>

#include <bit>
#include <latch>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/trial.hpp"

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

void Pool::parallel_for(void* pool, int64_t count, void* context,
                        void (*body)(void* context, int64_t index)) {
  std::atomic<int64_t> left{count};
  std::latch start{kThreads};
  const auto work = [&] {
    start.arrive_and_wait();
    for (int64_t i = left.fetch_sub(1) - 1; i >= 0; i = left.fetch_sub(1) - 1) {
      const auto piece = [&] { body(context, i); };
      if (!survives(piece)) static_cast<Pool*>(pool)->crashed_ = true;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < kThreads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

Result<DeviceSide> DeviceSide::create(const Runtime& runtime, const std::string& backend) {
  Result<DeviceAccess> access = runtime.plugins().device_access(backend);
  if (!access) return access.error();
  Result<DeviceStream> stream = access->create_stream();
  if (!stream) return stream.error();
  return DeviceSide(*access, std::move(*stream));
}

Result<void*> DeviceSide::send(size_t tensor, const std::byte* from, uint64_t size) {
  if (memory_.size() <= tensor) memory_.resize(tensor + 1);
  DeviceMemory& memory = memory_[tensor];
  if (memory.size() < size) {
    Result<DeviceMemory> larger = access_.allocate(std::bit_ceil(size));
    if (!larger) return larger.error();
    memory = std::move(*larger);
  }
  if (Status status = access_.copy_in(memory, from, size, stream_.get()); !status.ok()) {
    return status;
  }
  return memory.handle();
}

Status DeviceSide::fetch(size_t tensor, std::byte* to, uint64_t size) {
  return access_.copy_out(to, memory_[tensor], size, stream_.get());
}

}  // namespace opmux::conformance
