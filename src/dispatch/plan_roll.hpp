#pragma once

#include <atomic>
#include <memory>

namespace opmux::dispatch {

struct PlanControl;

/// Bound plans that a fork may end: entered from any thread, walked in a forked child without a
/// lock. Places are used again and live as long as the roll.
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

  /// The plan leaves by storing null into its place.
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
