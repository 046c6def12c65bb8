#pragma once

#include <algorithm>

#include "dispatch/thread_block.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Says on slow paths, whose marks name no plan, that the calling thread is inside of an
/// implementation: for the crash journal.
class RunningMark {
 public:
  explicit RunningMark(const registry::ImplementationRecord& implementation) {
    const ThreadBlock& block = own_thread_block();
    number_ = &block.slot->running[std::max(block.depth(), 1u) - 1];
    before_ = number_->exchange(health::number_in_marks(implementation.number),
                                std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~RunningMark() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    number_->store(before_, std::memory_order_relaxed);
  }
  RunningMark(const RunningMark&) = delete;
  RunningMark& operator=(const RunningMark&) = delete;

 private:
  std::atomic<uint32_t>* number_;
  uint32_t before_;
};

}  // namespace opmux::dispatch
