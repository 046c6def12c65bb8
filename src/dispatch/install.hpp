#pragma once

#include "dispatch/call_frame.hpp"
#include "dispatch/guarded_plan.hpp"
#include "dispatch/operator_slot.hpp"
#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

class Pack;

/// What a plan is kept with.
struct Installation {
  uint64_t epoch;
  uint64_t context;
  const CallSite* site;
  const ArgValue* values;
  const registry::Arguments* arguments;
  const PlanRecord* plan;
  const DecisionSpace* space;
  const PreparedState* prepared;
  const Pack* pack;
  bool exact_only;
  const CallSettings& settings;
};

/// Whether arguments of this site can be taken over word by word.
bool can_be_kept(const registry::Schema& schema, const Installation& what);

/// Keeps a plan in the thread's line of the operator, in place of its oldest if there are four.
void install(ThreadBlock& block, OperatorSlot& slot, OperatorState& state,
             const Installation& what);

/// Fills in a plan for a site; its memory must have room for the schema's arguments.
void fill_plan(GuardedPlan& plan, const registry::Schema& schema, const ShapeChecks& checks,
               const Installation& what);

/// Room for the frame and the exact words of a plan of this schema; null if it has enough.
std::unique_ptr<std::byte[]> make_room(GuardedPlan& plan, const registry::Schema& schema);

}  // namespace opmux::dispatch
