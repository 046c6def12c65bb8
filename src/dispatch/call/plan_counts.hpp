#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace opmux::dispatch {

struct ImplementationCounters;

/// Successful calls of one plan of a thread. Only that thread writes the numbers. `counters`
/// changes only under ThreadBlock::counting.
struct PlanCount {
  std::atomic<uint64_t> calls{0};   ///< calls that were not inside another call of the thread
  std::atomic<uint64_t> nested{0};  ///< calls inside another one
  std::shared_ptr<ImplementationCounters> counters;  ///< the implementation that was called

  /// Release: a writer that sees the count of a finished call may free what that call used.
  void add_call() { add(calls, std::memory_order_release); }
  void add_nested() { add(nested, std::memory_order_relaxed); }
  uint64_t all() const {
    return calls.load(std::memory_order_relaxed) + nested.load(std::memory_order_relaxed);
  }

 private:
  static void add(std::atomic<uint64_t>& number, std::memory_order order) {
    number.store(number.load(std::memory_order_relaxed) + 1, order);
  }
};

/// The counts of all plans of a thread. They are beside each other and apart from the plans, so
/// that reading the counts of a thousand threads waits little for memory. The thread adds counts
/// while others read them; none is removed before the object is destroyed.
class PlanCounts {
 public:
  constexpr PlanCounts() = default;
  ~PlanCounts() {
    for (const Chunk* chunk = first_.load(std::memory_order_relaxed); chunk != nullptr;) {
      const Chunk* const next = chunk->next.load(std::memory_order_relaxed);
      delete chunk;
      chunk = next;
    }
  }
  PlanCounts(const PlanCounts&) = delete;
  PlanCounts& operator=(const PlanCounts&) = delete;

  /// Adds the count of a new plan. Only the thread that owns the object calls this.
  PlanCount& add() {
    if (last_ == nullptr || last_->used.load(std::memory_order_relaxed) == kPerChunk) {
      auto* const chunk = new Chunk;
      (last_ == nullptr ? first_ : last_->next).store(chunk, std::memory_order_release);
      last_ = chunk;
    }
    const uint32_t at = last_->used.load(std::memory_order_relaxed);
    last_->used.store(at + 1, std::memory_order_release);
    return last_->counts[at];
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    const Chunk* chunk = first_.load(std::memory_order_acquire);
    for (; chunk != nullptr; chunk = chunk->next.load(std::memory_order_acquire)) {
      const uint32_t used = chunk->used.load(std::memory_order_acquire);
      for (uint32_t i = 0; i < used; ++i) visit(chunk->counts[i]);
    }
  }

 private:
  static constexpr uint32_t kPerChunk = 31;
  struct Chunk {
    PlanCount counts[kPerChunk];
    std::atomic<uint32_t> used{0};
    std::atomic<Chunk*> next{nullptr};
  };

  std::atomic<Chunk*> first_{nullptr};
  Chunk* last_ = nullptr;
};

}  // namespace opmux::dispatch
