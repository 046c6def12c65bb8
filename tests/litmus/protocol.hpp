// The protocol by which calls read an operator's state without locks while writers replace and free
// it. This is the engine's protocol in isolation, small enough for stress tests under
// ThreadSanitizer and for deliberate faults.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gate.hpp"
#include "state.hpp"

namespace litmus {

inline constexpr std::size_t kReportAt = 64;  // In retired states.

// Deliberate faults. For each one, litmus_test.cpp has a schedule that shows the damage.
enum class Fault { none, mark_after_check, free_without_scan, cold_mark_replaced, epoch_from_word };

// A hazard slot that was set when a state was retired, so it may protect a call inside that state.
struct Blocker {
  std::uint64_t block;
  std::size_t level;
  std::uint64_t mark;
};

inline bool register_membarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

template <Fault kFault = Fault::none>
class Runtime {
 public:
  using Report = std::function<void(const std::vector<Blocker>&)>;

  explicit Runtime(Report report = {}) : report_(std::move(report)) {
    for (std::size_t op = 0; op < kOperators; ++op) {
      owned_[op] = make_state();
      current_[op].store(owned_[op].get(), std::memory_order_release);
      words_[op].store(owned_[op]->epoch, std::memory_order_release);
    }
  }

  void add(Block& block) {
    std::lock_guard lock(registry_);
    block.number = ++last_block_;
    blocks_[block.number] = &block;
  }

  void remove(const Block& block) {
    std::lock_guard lock(registry_);
    blocks_.erase(block.number);
  }

  // Runs body(line) with a plan of the operator. May be nested, also on the same operator: the line
  // is a copy, because an inner call may refill the thread's line.
  template <class Body>
  void call(Block& block, std::size_t op, const Body& body) {
    const std::size_t depth = block.depth++;
    Line line;
    if (enter_hot(block, depth, op, line)) {
      ++block.hot_calls;
    } else {
      enter_cold(block, depth, op, line);
      ++block.cold_calls;
    }
    block.reach(Point::entered);
    body(std::as_const(line));
    if (depth < kLevels) block.marks[depth].store(0, std::memory_order_release);
    --block.depth;
  }

  // Replaces the operator's state; returns the epoch of the new state. Never waits for a call.
  std::uint64_t publish(std::size_t op) {
    std::lock_guard lock(writer_);
    return publish_locked(op);
  }

  // Like publish, but returns when no call is left in the old state. Must not be called inside a
  // call.
  std::uint64_t withdraw(std::size_t op) {
    std::unique_lock lock(writer_);
    const std::uint64_t old = owned_[op]->epoch;
    const std::uint64_t fresh = publish_locked(op);
    const auto is_old = [old](const Batch& batch) { return batch.state->epoch == old; };
    while (std::any_of(retired_.begin(), retired_.end(), is_old)) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      reclaim_locked();
    }
    return fresh;
  }

  void reclaim() {
    std::lock_guard lock(writer_);
    reclaim_locked();
  }

  std::size_t retired() {
    std::lock_guard lock(writer_);
    return retired_.size();
  }

  std::uint64_t alive() {
    std::lock_guard lock(writer_);
    return made_ - freed_;
  }

  std::uint64_t word(std::size_t op) const { return words_[op].load(std::memory_order_acquire); }

  Gate* writer_gate = nullptr;

 private:
  struct Batch {
    std::unique_ptr<State> state;
    std::vector<Blocker> blockers;
  };

  // Slots are release stores: a writer that sees a later value also sees all reads under the
  // earlier one completed. The fence orders only the compiler; the writer's membarrier orders the
  // processor. The last level has only cold marks, which protect everything loaded under them, so
  // that deeper nested calls need no slot.
  static void set_mark(Block& block, std::size_t depth, std::uint64_t mark) {
    if (depth >= kLevels) return;
    if (depth == kLevels - 1) mark = kColdBit | ++block.cold_sequence;
    block.marks[depth].store(mark, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  bool enter_hot(Block& block, std::size_t depth, std::size_t op, Line& line) {
    line = block.lines[op];
    if constexpr (kFault != Fault::mark_after_check) set_mark(block, depth, line.plan_id);
    block.reach(Point::marked);
    if (words_[op].load(std::memory_order_acquire) != line.epoch) return false;
    block.reach(Point::checked);
    if constexpr (kFault == Fault::mark_after_check) set_mark(block, depth, line.plan_id);
    return true;
  }

  // The whole first run stays under the cold mark: a writer may have recorded that mark as the
  // protector of this state, so exchanging it for the plan's mark would look like leaving.
  //
  // The epoch of the line is that of the state, never that of the word. A state newer than the word
  // (the writer is between its two stores) makes a line that misses until the word follows; a state
  // older than the word makes a line that always misses.
  void enter_cold(Block& block, std::size_t depth, std::size_t op, Line& line) {
    set_mark(block, depth, kColdBit | ++block.cold_sequence);
    const State* state = current_[op].load(std::memory_order_acquire);
    block.reach(Point::loaded);
    const Plan& plan = state->plans[block.number % kPlans];
    line = Line{state->epoch, plan.id, &plan};
    if constexpr (kFault == Fault::epoch_from_word) line.epoch = word(op);
    block.lines[op] = line;
    if constexpr (kFault == Fault::cold_mark_replaced) set_mark(block, depth, line.plan_id);
  }

  // The state is stored before the word: a thread that sees the new word finds the new state, so
  // one cold call repairs a miss. In the opposite order every call between the stores would be cold
  // and would refill its line from an outdated state.
  std::uint64_t publish_locked(std::size_t op) {
    std::unique_ptr<State> next = make_state();
    const std::uint64_t epoch = next->epoch;
    current_[op].store(next.get(), std::memory_order_release);
    if (writer_gate) writer_gate->reach(Point::stored_current);
    words_[op].store(epoch, std::memory_order_release);
    // From here on each thread either shows its slot to the scan or reads the new word and state.
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    std::swap(owned_[op], next);
    std::vector<Blocker> blockers = scan(*next);
    retired_.push_back({std::move(next), std::move(blockers)});
    reclaim_locked();
    if (retired_.size() == kReportAt && report_) report_(all_blockers());
    return epoch;
  }

  std::vector<Blocker> scan(const State& old) {
    std::vector<Blocker> found;
    if constexpr (kFault == Fault::free_without_scan) return found;
    std::lock_guard lock(registry_);
    for (const auto& [number, block] : blocks_) {
      for (std::size_t level = 0; level < kLevels; ++level) {
        const std::uint64_t mark = block->marks[level].load(std::memory_order_acquire);
        if ((mark & kColdBit) || old.owns(mark)) found.push_back({number, level, mark});
      }
    }
    return found;
  }

  // A blocker that was released once is removed permanently, even if its thread sets the same mark
  // again on the way to a miss.
  void reclaim_locked() {
    std::lock_guard lock(registry_);
    std::erase_if(retired_, [this](Batch& batch) {
      std::erase_if(batch.blockers, [this](const Blocker& blocker) { return !holds(blocker); });
      if (!batch.blockers.empty()) return false;
      dispose(std::move(batch.state));
      return true;
    });
  }

  bool holds(const Blocker& blocker) const {
    const auto found = blocks_.find(blocker.block);
    return found != blocks_.end() &&
           found->second->marks[blocker.level].load(std::memory_order_acquire) == blocker.mark;
  }

  std::vector<Blocker> all_blockers() const {
    std::vector<Blocker> all;
    for (const Batch& batch : retired_) {
      all.insert(all.end(), batch.blockers.begin(), batch.blockers.end());
    }
    return all;
  }

  std::unique_ptr<State> make_state() {
    auto state = std::make_unique<State>();
    state->epoch = ++last_epoch_;
    state->canary = kCanary ^ state->epoch;
    for (Plan& plan : state->plans) {
      plan.id = ++last_plan_;
      plan.canary = kCanary ^ plan.id;
      plan.state = state.get();
    }
    ++made_;
    return state;
  }

  // Volatile, because otherwise the compiler would drop stores before delete. With a fault the
  // memory is kept, so that a broken reader reliably finds poison.
  void dispose(std::unique_ptr<State> state) {
    *static_cast<volatile std::uint64_t*>(&state->canary) = kPoison;
    for (Plan& plan : state->plans) *static_cast<volatile std::uint64_t*>(&plan.canary) = kPoison;
    ++freed_;
    if constexpr (kFault != Fault::none) graveyard_.push_back(std::move(state));
  }

  std::array<std::atomic<std::uint64_t>, kOperators> words_{};
  std::array<std::atomic<const State*>, kOperators> current_{};

  std::mutex writer_;  // Guards all members up to the registry.
  std::array<std::unique_ptr<State>, kOperators> owned_;
  std::vector<Batch> retired_;
  std::vector<std::unique_ptr<State>> graveyard_;
  std::uint64_t last_epoch_ = 0;
  std::uint64_t last_plan_ = 0;
  std::uint64_t made_ = 0;
  std::uint64_t freed_ = 0;
  Report report_;

  std::mutex registry_;
  std::map<std::uint64_t, Block*> blocks_;
  std::uint64_t last_block_ = 0;
};

// Registers a block for the lifetime of a thread.
template <class R>
class ThreadScope {
 public:
  explicit ThreadScope(R& runtime) : runtime_(runtime) { runtime_.add(block); }
  ~ThreadScope() { runtime_.remove(block); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  Block block;

 private:
  R& runtime_;
};

}  // namespace litmus
