#pragma once

#include <algorithm>

#include "dispatch/thread_block.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Records for the crash journal that the calling thread runs code of an implementation. Needed on
/// slow paths, because a cold mark does not name a plan and thus no implementation. The signal
/// fences keep the compiler from moving the implementation's code out of the recorded section; a
/// signal handler on this thread reads the number.
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
