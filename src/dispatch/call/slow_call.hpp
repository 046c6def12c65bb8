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

}  // namespace opmux::dispatch
