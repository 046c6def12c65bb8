#pragma once

#include <opmux/call_site.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>

#include "dispatch/call_frame.hpp"
#include "dispatch/guarded_plan.hpp"
#include "dispatch/operator_slot.hpp"

namespace opmux::dispatch {

/// The way of a call that no plan of its thread fits: check, classify, decide if needed, run, and
/// keep the plan for the next time. `settings` null = the engine's own; `report` may be null.
Status::Detail* call_slowly(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                            const CallSettings* settings, CallReport* report) noexcept;

/// What follows an outcome that is not ok: the next candidate, or the error.
/// The plan holds the arguments; its mark, at level 0, is cleared at the end.
Status::Detail* recover(GuardedPlan& plan, int32_t outcome) noexcept;

/// Arguments checked against the schema, with their dimensions.
struct CheckedArguments {
  registry::Arguments arguments;
  registry::BoundDims dims;
  bool empty = false;  ///< no output has an element: nothing to run
};
Status check(const registry::Schema& schema, const CallSite& site, const ArgValue* values,
             CheckedArguments& checked);

/// The error of a call inside too many others, and of one whose runtime is gone.
Status too_deep(const OperatorSlot& slot);
Status withdrawn(const OperatorSlot& slot);

/// The decisions of an operator in a context (scope << 32 | ambient); the caller holds a mark.
DecisionSpace& space_of(const OperatorSlot& slot, OperatorState& state, uint64_t context);

/// Says that something else is chosen than the lock of a frozen runtime has, and that a selector
/// failed.
void tell_oddities(const OperatorSlot& slot, const Choice& choice);

/// The decision for a plan that the program keeps. Owned by the caller: it outlives the epoch.
struct ChosenForPlan {
  std::shared_ptr<const Choice> choice;
  std::shared_ptr<const registry::OperatorRecord> op;
  uint64_t context = 0;
  Status kept = {};  ///< why it is not kept for its class, if it is not
};
Result<ChosenForPlan> choose_for_plan(OperatorSlot& slot, const CheckedArguments& checked,
                                      uint32_t tag, bool capturing);

/// Before a decision: loads plugins that wait for it, unless a graph is being captured.
void load_waiting_plugins(OperatorSlot& slot);

}  // namespace opmux::dispatch
