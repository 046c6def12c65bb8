#pragma once

#include <memory>
#include <utility>

#include "dispatch/decision.hpp"
#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

/// Room for a decision that the thread keeps from one to the next. A decision inside another one
/// (verifiers may call operators) gets its own.
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
