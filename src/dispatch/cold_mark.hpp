#pragma once

#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

/// Guard for reading an OperatorState outside of the fast path. The constructor stores a cold mark
/// in the thread's next free hazard slot; the destructor clears it. Load `OperatorSlot::current`
/// only while the guard is alive: the state is not freed before the mark is cleared.
///
/// If all kMaxDepth slots are in use, the guard protects nothing and depth() == kMaxDepth. The
/// caller must check this and must not read any state.
class ColdMark {
 public:
  ColdMark() : block_(own_thread_block()), depth_(block_.depth()) {
    if (depth_ < kMaxDepth) block_.mark_cold(depth_);
  }
  ~ColdMark() {
    if (depth_ < kMaxDepth) block_.clear(depth_);
  }
  ColdMark(const ColdMark&) = delete;
  ColdMark& operator=(const ColdMark&) = delete;

  ThreadBlock& block() const { return block_; }
  uint32_t depth() const { return depth_; }

 private:
  ThreadBlock& block_;
  uint32_t depth_;
};

}  // namespace opmux::dispatch
