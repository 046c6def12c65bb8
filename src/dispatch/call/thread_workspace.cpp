#include "dispatch/call/thread_workspace.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace opmux::dispatch {
namespace {

constexpr uint64_t kAlignment = 64;
/// Larger requests are refused, so that sums of sizes do not overflow.
constexpr uint64_t kLargest = uint64_t{1} << 46;

void* aligned(std::byte* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<void*>((address + kAlignment - 1) & ~(kAlignment - 1));
}

}  // namespace

bool WorkspaceBuffer::renew(uint64_t bytes) {
  size = 0;
  start = nullptr;
  memory.reset();
  if (bytes > kLargest) return false;
  memory.reset(new (std::nothrow) std::byte[bytes + kAlignment]);
  if (memory == nullptr) return false;
  start = aligned(memory.get());
  size = bytes;
  return true;
}

ThreadWorkspace::Part ThreadWorkspace::take(uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (size > kLargest) return {};
  const uint64_t before = version_.load(std::memory_order_relaxed);
  largest_ = std::max(largest_, size);
  const uint64_t needed = std::max(largest_, largest_before_);
  const bool grows = size > buffer_.size;
  const bool shrinks = before == 0 && buffer_.size / 2 > needed;
  if (grows || shrinks) {
    // Plans that have the address must ask again, even if the allocation fails.
    version_.store(0, std::memory_order_relaxed);
    const uint64_t bytes = grows ? std::max(size, 2 * buffer_.size) : needed;
    if (!buffer_.renew(bytes) && !buffer_.renew(size)) return {};
  }
  if (version_.load(std::memory_order_relaxed) == 0) {
    version_.store(++last_version_, std::memory_order_release);
  }
  return {buffer_.start, last_version_};
}

bool ThreadWorkspace::revoke(const void* by) {
  const std::lock_guard lock(mutex_);
  if (buffer_.size == 0 || version_.load(std::memory_order_relaxed) == 0) return false;
  largest_before_ = std::exchange(largest_, 0);
  revoker_ = by;
  version_.store(0, std::memory_order_release);
  return true;
}

bool ThreadWorkspace::revoked_by(const void* by) {
  const std::lock_guard lock(mutex_);
  return buffer_.size != 0 && version_.load(std::memory_order_relaxed) == 0 && revoker_ == by;
}

void ThreadWorkspace::release() {
  WorkspaceBuffer freed;
  const std::lock_guard lock(mutex_);
  if (version_.load(std::memory_order_relaxed) != 0) return;
  // Empty the buffer before the memory is freed: a child that is forked in between then finds
  // either both or neither.
  freed = std::move(buffer_);
  buffer_ = {};
  largest_ = largest_before_ = 0;
}

uint64_t ThreadWorkspace::size() {
  const std::lock_guard lock(mutex_);
  return buffer_.size;
}

}  // namespace opmux::dispatch
