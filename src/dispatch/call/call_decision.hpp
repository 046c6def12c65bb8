#pragma once

#include <memory>

#include <opmux/status.hpp>

#include "dispatch/call/call_check.hpp"
#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// Logs a choice that deviates from the lock of a frozen runtime, a failed selector, and a verifier
/// that reads many sizes of a dimension.
void log_oddities(const OperatorSlot& slot, const Decision& choice);

/// The decision for a bound plan. The caller owns it, because a bound plan outlives the epoch.
struct DecisionForPlan {
  std::shared_ptr<const Decision> choice;
  std::shared_ptr<const registry::OperatorRecord> op;
  uint64_t context = 0;
  uint64_t epoch = 0;  ///< that of the operator's state
  Status kept = {};    ///< ok, or why the decision could not be cached for its class
};
/// `max_threads` is that of the plan's calls.
Result<DecisionForPlan> choose_for_plan(OperatorSlot& slot, const CheckedArguments& checked,
                                        uint32_t tag, int32_t max_threads, bool capturing);

/// Loads deferred plugins that implement the operator, unless a graph is being captured or the
/// calling thread is inside a NoCallbackGuard. Call it before reading the operator's state, so that
/// the decision sees the new implementations.
void load_waiting_plugins(OperatorSlot& slot);

}  // namespace opmux::dispatch
