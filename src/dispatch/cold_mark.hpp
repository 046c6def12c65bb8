#pragma once

#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

/// The in-flight mark of a call that reads its operator's state: set before, cleared after. Without
/// room (kMaxDepth calls deep) it marks nothing, and nothing may be read.
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
