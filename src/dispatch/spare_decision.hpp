#pragma once

#include <memory>
#include <utility>

#include "dispatch/decision.hpp"
#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

/// A Decision whose memory the thread reuses. A nested decision (a verifier may call an operator)
/// allocates a new one.
class SpareDecision {
 public:
  SpareDecision() : decision_(std::move(own_thread_block().spare_decision)) {
    if (decision_ == nullptr) decision_ = std::make_unique<Decision>();
  }
  ~SpareDecision() { own_thread_block().spare_decision = std::move(decision_); }
  SpareDecision(const SpareDecision&) = delete;
  SpareDecision& operator=(const SpareDecision&) = delete;

  Decision& operator*() const { return *decision_; }

 private:
  std::unique_ptr<Decision> decision_;
};

}  // namespace opmux::dispatch
