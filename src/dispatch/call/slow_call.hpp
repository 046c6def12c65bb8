#pragma once

#include <opmux/detail/call_site.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// The slow path, for calls that no cached plan of the thread accepts: checks the arguments, looks
/// up or makes the decision for their class, runs it, and caches the plan in the thread. Null
/// `settings` means the engine's defaults; `report` may be null.
Status::Detail* call_slowly(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                            const CallSettings* settings, CallReport* report) noexcept;

/// Continues a call whose fast-path plan returned an outcome other than ok: runs the next candidate
/// or returns the error. The plan's frame holds the arguments. The plan's mark stays in hazard
/// slot 0 until the end, so the plan and its state remain valid; the slow path uses level 1.
Status::Detail* recover(CachedPlan& plan, int32_t outcome) noexcept;
/// recover() for a plan that ran inside another call. Leaves the hazard slots as they are.
Status::Detail* recover_nested(CachedPlan& plan, int32_t outcome) noexcept;

/// Arguments that were checked against the schema, with their dimensions.
struct CheckedArguments {
  schema::Arguments arguments;
  schema::BoundDims dims;
  bool empty = false;  ///< all outputs have zero elements, so there is nothing to run
};
Status check(const schema::Schema& schema, const CallSite& site, const ArgValue* values,
             CheckedArguments& checked);

/// The error for a call nested deeper than kMaxDepth.
Status too_deep(const OperatorSlot& slot);
/// Refuses a call that this thread makes from inside a function that the call could wait for: from
/// a NoCallbackGuard ("runtime.callback"), or from a PreparationGuard of the same operator
/// ("call.reentrant"). Calls that a cached plan accepts wait for nothing and are not refused.
Status refuse_reentry(const OperatorSlot& slot);
/// The error for an operator whose runtime was destroyed.
Status withdrawn(const OperatorSlot& slot);

/// The decisions of an operator in a context (scope serial << 32 | ambient bits). The caller must
/// hold a mark, which keeps `state` alive.
DecisionCache& space_of(const OperatorSlot& slot, CompiledOperator& state, uint64_t context);

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
Result<DecisionForPlan> choose_for_plan(OperatorSlot& slot, const CheckedArguments& checked,
                                        uint32_t tag, bool capturing);

/// Loads deferred plugins that implement the operator, unless a graph is being captured or the
/// calling thread is inside a NoCallbackGuard. Call it before reading the operator's state, so that
/// the decision sees the new implementations.
void load_waiting_plugins(OperatorSlot& slot);

}  // namespace opmux::dispatch
