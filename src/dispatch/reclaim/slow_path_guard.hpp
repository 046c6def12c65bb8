#pragma once

#include <algorithm>

#include "dispatch/call/thread_block.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Records for the crash journal that the calling thread runs code of an implementation or, with
/// the number of note_part(), of a plugin or backend. Needed outside of the fast path, because a
/// cold mark does not name a plan and thus no implementation. The signal fences keep the compiler
/// from moving the implementation's code out of the recorded section; a signal handler on this
/// thread reads the word.
class RunningCallGuard {
 public:
  explicit RunningCallGuard(const registry::ImplementationRecord& implementation,
                            crash::Phase phase = crash::Phase::run)
      : RunningCallGuard(crash::number_in_marks(implementation.number), phase) {}
  RunningCallGuard(uint32_t number, crash::Phase phase) {
    const ThreadBlock& block = own_thread_block();
    word_ = &block.slot->running[std::max(block.depth(), 1u) - 1];
    before_ = word_->exchange(crash::word_of(number, phase), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~RunningCallGuard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    word_->store(before_, std::memory_order_relaxed);
  }
  RunningCallGuard(const RunningCallGuard&) = delete;
  RunningCallGuard& operator=(const RunningCallGuard&) = delete;

 private:
  std::atomic<uint32_t>* word_;
  uint32_t before_;
};

/// Guard for a function of an implementation that prepares a call: verify, create, load, plan. The
/// crash journal names the function, and calls of the implementation's operator by this thread are
/// refused (refuse_reentry()), because they could wait for the function that makes them.
class PreparationGuard {
 public:
  PreparationGuard(const registry::ImplementationRecord& implementation, crash::Phase phase)
      : running_(implementation, phase),
        block_(own_thread_block()),
        entry_{&implementation, phase, block_.preparing} {
    block_.preparing = &entry_;
  }
  ~PreparationGuard() { block_.preparing = entry_.outer; }
  PreparationGuard(const PreparationGuard&) = delete;
  PreparationGuard& operator=(const PreparationGuard&) = delete;

 private:
  const RunningCallGuard running_;
  ThreadBlock& block_;
  const Preparation entry_;
};

/// Guard for reading a CompiledOperator outside of the fast path. The constructor stores a cold
/// mark in the thread's next free hazard slot; the destructor clears it. Load
/// `OperatorSlot::current` only while the guard is alive: the state is not freed before the mark is
/// cleared. Load it before the first pin(), which may free every state but that of the plan.
///
/// A cold mark keeps every retired state alive, so it must not last long. While a kernel runs,
/// pin() replaces it with the id of the plan, which keeps only the state of that plan alive.
/// ThreadBlock::slow_calls has the cold mark all the time: a writer that found the call under one
/// mark recognises it under the other.
///
/// If all kMaxDepth slots are in use, the guard protects nothing and depth() == kMaxDepth. The
/// caller must check this and must not read any state.
class SlowPathGuard {
 public:
  SlowPathGuard() : block_(own_thread_block()), depth_(block_.depth()) {
    if (depth_ < kMaxDepth) block_.mark_cold(depth_);
  }
  ~SlowPathGuard() {
    if (depth_ == kMaxDepth) return;
    block_.slow_calls[depth_].store(0, std::memory_order_release);
    block_.clear(depth_);
  }
  SlowPathGuard(const SlowPathGuard&) = delete;
  SlowPathGuard& operator=(const SlowPathGuard&) = delete;

  ThreadBlock& block() const { return block_; }
  uint32_t depth() const { return depth_; }

  /// Keeps only the state that owns the plan with this id alive until the returned object is
  /// destroyed.
  class Pin {
   public:
    Pin(ThreadBlock& block, uint32_t depth, uint64_t plan_id)
        : mark_(block.marks[depth]), cold_(mark_.load(std::memory_order_relaxed)) {
      mark_.store(plan_id, std::memory_order_release);
    }
    ~Pin() { mark_.store(cold_, std::memory_order_release); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    std::atomic<uint64_t>& mark_;
    const uint64_t cold_;
  };
  [[nodiscard]] Pin pin(uint64_t plan_id) const { return {block_, depth_, plan_id}; }

 private:
  ThreadBlock& block_;
  uint32_t depth_;
};

/// Guard for running a cached plan inside another call of the thread. mark() protects the state of
/// a plan as the mark in hazard slot 0 does for other calls; ThreadBlock::slow_calls identifies the
/// call, because ThreadBlock::finished_calls() does not count it.
class NestedCallGuard {
 public:
  explicit NestedCallGuard(ThreadBlock& block) : block_(block), level_(block.depth()) {
    if (usable()) block_.begin_slow_call(level_);
  }
  ~NestedCallGuard() {
    if (!usable()) return;
    block_.slow_calls[level_].store(0, std::memory_order_release);
    block_.clear(level_);
  }
  NestedCallGuard(const NestedCallGuard&) = delete;
  NestedCallGuard& operator=(const NestedCallGuard&) = delete;

  /// False if no hazard slot is free for the call, or none after it for recover_nested(). Then the
  /// guard protects nothing.
  bool usable() const { return level_ + 1 < kMaxDepth; }
  uint32_t level() const { return level_; }
  /// Stores the id of a plan in the hazard slot. Loads of `OperatorSlot::epoch` must follow.
  void mark(uint64_t plan_id) const {
    block_.marks[level_].store(plan_id, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  ThreadBlock& block_;
  const uint32_t level_;
};

}  // namespace opmux::dispatch
