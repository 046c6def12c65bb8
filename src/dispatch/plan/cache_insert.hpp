#pragma once

#include "dispatch/call/call_frame.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

class Pack;

/// Input for caching or binding a plan: the decision and the call it was made for. Borrows
/// everything.
struct CacheInsert {
  uint64_t epoch;
  uint64_t context;
  const CallSite* site;
  const ArgValue* values;
  const schema::Arguments* arguments;
  const RankedCandidate* plan;
  const DecisionCache* space;
  PreparedPtr prepared;
  const Pack* pack;
  bool exact_only;
  const CallSettings& settings;
};

/// True if a plan can be cached for this call: its arguments can be copied into the frame word by
/// word, it needs no transforms, and its guard has few enough facts. `converts`: runs of the plan
/// may convert an int to a float in the frame, which is possible once per copy of the arguments.
bool can_be_kept(const schema::Schema& schema, const CacheInsert& what, bool converts = false);

/// Caches a plan in the calling thread's ring of plans for the operator. If the ring is full, it
/// replaces the successor of the most recently used plan.
///
/// `nested`: the call ran inside another call of this thread. Then it replaces only a stale plan
/// that counts for the same implementation, because ThreadBlock::finished_calls() must not change.
/// It caches nothing if there is none and the ring is full, if the call around it is one of the
/// same operator, or if the implementation has a workspace.
void install(ThreadBlock& block, OperatorSlot& slot, CompiledOperator& state,
             const CacheInsert& what, bool nested);

/// True if a running call of this thread may use the frame of the plan: one of the plans of the
/// same state is in a hazard slot below `level`.
bool in_use(const ThreadBlock& block, const CachedPlan& plan, uint32_t level);

/// The sizes of the arrays of a plan: `args`, `exact` (in words), `guard_values` and tensor_at().
struct PlanRoom {
  static constexpr size_t kAlign = 16;  ///< `exact` is compared in pairs of words
  size_t args, exact, guards;

  /// The sizes for a plan of these arguments whose candidate compares `guards` facts.
  static PlanRoom of(const schema::Schema& schema, const CallSite& site,
                     const schema::Arguments& arguments, size_t guards);
  size_t bytes() const {
    const size_t tensor_at = args;  // one byte for each argument that may be a tensor
    return args * sizeof(opmux_arg) + (exact + guards) * sizeof(uint64_t) + tensor_at;
  }
  bool is_in(const CachedPlan& plan) const;
  /// Lets a plan use this many bytes, aligned to kAlign. They must live as long as the plan.
  void give_to(CachedPlan& plan, void* memory) const;
};
static_assert(sizeof(opmux_arg) % PlanRoom::kAlign == 0);

/// Fills in a plan for a call site. It must have room for the arguments. `guards` must live as long
/// as the plan is used, and so must `error`, where its kernel reports errors.
void fill_plan(CachedPlan& plan, const schema::Schema& schema, const ShapeChecks& checks,
               ShapeGuards& guards, const CacheInsert& what, opmux_error& error);

}  // namespace opmux::dispatch
