#pragma once

#include <atomic>
#include <memory>

namespace opmux::dispatch {

struct PlanControl;

/// A lock-free list of bound plans whose backend does not survive a fork. Any thread may enter a
/// plan; a forked child walks the list to revoke them. Places are reused and freed with the list.
class PlanRoll {
 public:
  using Place = std::atomic<PlanControl*>;

  PlanRoll() = default;
  ~PlanRoll() {
    for (Node* at = first_.load(); at != nullptr;) {
      const std::unique_ptr<Node> owned(at);
      at = at->next;
    }
  }
  PlanRoll(const PlanRoll&) = delete;
  PlanRoll& operator=(const PlanRoll&) = delete;

  /// Adds a plan. To remove it, store null into the returned place.
  Place& enter(PlanControl* plan) {
    for (Node* at = first_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
      PlanControl* nobody = nullptr;
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
      if (PlanControl* plan = at->plan.load(std::memory_order_acquire)) visit(*plan);
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
