#pragma once

#include <algorithm>

#include "dispatch/call/thread_block.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Records for the crash journal that the calling thread runs code of an implementation. Needed on
/// slow paths, because a cold mark does not name a plan and thus no implementation. The signal
/// fences keep the compiler from moving the implementation's code out of the recorded section; a
/// signal handler on this thread reads the number.
class RunningCallGuard {
 public:
  explicit RunningCallGuard(const registry::ImplementationRecord& implementation) {
    const ThreadBlock& block = own_thread_block();
    number_ = &block.slot->running[std::max(block.depth(), 1u) - 1];
    before_ =
        number_->exchange(crash::number_in_marks(implementation.number), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~RunningCallGuard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    number_->store(before_, std::memory_order_relaxed);
  }
  RunningCallGuard(const RunningCallGuard&) = delete;
  RunningCallGuard& operator=(const RunningCallGuard&) = delete;

 private:
  std::atomic<uint32_t>* number_;
  uint32_t before_;
};

/// Guard for reading a CompiledOperator outside of the fast path. The constructor stores a cold
/// mark in the thread's next free hazard slot; the destructor clears it. Load
/// `OperatorSlot::current` only while the guard is alive: the state is not freed before the mark is
/// cleared.
///
/// If all kMaxDepth slots are in use, the guard protects nothing and depth() == kMaxDepth. The
/// caller must check this and must not read any state.
class SlowPathGuard {
 public:
  SlowPathGuard() : block_(own_thread_block()), depth_(block_.depth()) {
    if (depth_ < kMaxDepth) block_.mark_cold(depth_);
  }
  ~SlowPathGuard() {
    if (depth_ < kMaxDepth) block_.clear(depth_);
  }
  SlowPathGuard(const SlowPathGuard&) = delete;
  SlowPathGuard& operator=(const SlowPathGuard&) = delete;

  ThreadBlock& block() const { return block_; }
  uint32_t depth() const { return depth_; }

 private:
  ThreadBlock& block_;
  uint32_t depth_;
};

}  // namespace opmux::dispatch
