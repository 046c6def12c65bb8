#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "crash/hazard_slot.hpp"
#include "dispatch/call/thread_block.hpp"

namespace opmux::dispatch {

/// Allocates the plan ids of one CompiledOperator. An id contains the serial of the state, so that
/// the reclaimer can map a mark to its state, and the number of the implementation, so that the
/// crash journal, where marks outlive the process, can name it. Thread-safe.
class PlanIds {
 public:
  /// `serial` must be unique in the process.
  explicit PlanIds(uint64_t serial) : serial_(serial) {}

  uint64_t serial() const { return serial_; }
  /// Reserves `count` consecutive numbers and returns the first.
  uint64_t take(uint64_t count) { return taken_.fetch_add(count, std::memory_order_relaxed); }
  /// Composes an id. The number is truncated to kCountBits, so plans of the same state and
  /// implementation may share an id.
  uint64_t id(uint64_t number, uint32_t implementation) const {
    const uint64_t counted = number & ((1u << kCountBits) - 1);
    return (serial_ << kBits | counted << crash::kNumberBits |
            crash::number_in_marks(implementation)) &
           ~kReservedBits;
  }
  /// True if the state with this serial allocated the plan id.
  static bool is_of(uint64_t plan_id, uint64_t serial) {
    return (plan_id & ~kReservedBits) >> kBits == (serial << kBits & ~kReservedBits) >> kBits;
  }
  /// True if the same state allocated both plan ids.
  static bool same_state(uint64_t a, uint64_t b) {
    return ((a ^ b) & ~kReservedBits) >> kBits == 0;
  }

 private:
  static constexpr uint32_t kCountBits = 4, kBits = kCountBits + crash::kNumberBits;
  static constexpr uint64_t kReservedBits = kColdBit | kBoundBit;
  const uint64_t serial_;
  std::atomic<uint64_t> taken_{0};
};

struct BoundPlanState;

/// A lock-free list of bound plans whose backend does not survive a fork. Any thread may enter a
/// plan; a forked child walks the list to revoke them. Places are reused and freed with the list.
class PlanList {
 public:
  using Place = std::atomic<BoundPlanState*>;

  PlanList() = default;
  ~PlanList() {
    for (Node* at = first_.load(); at != nullptr;) {
      const std::unique_ptr<Node> owned(at);
      at = at->next;
    }
  }
  PlanList(const PlanList&) = delete;
  PlanList& operator=(const PlanList&) = delete;

  /// Adds a plan. To remove it, store null into the returned place.
  Place& enter(BoundPlanState* plan) {
    for (Node* at = first_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
      BoundPlanState* nobody = nullptr;
      if (at->plan.compare_exchange_strong(nobody, plan, std::memory_order_acq_rel)) {
        return at->plan;
      }
    }
    auto* node = new Node{plan, first_.load(std::memory_order_relaxed)};
    while (!first_.compare_exchange_weak(node->next, node, std::memory_order_acq_rel)) {
    }
    return node->plan;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Node* at = first_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
      if (BoundPlanState* plan = at->plan.load(std::memory_order_acquire)) visit(*plan);
    }
  }

 private:
  struct Node {
    Place plan;
    Node* next;
  };
  std::atomic<Node*> first_{nullptr};
};

}  // namespace opmux::dispatch
