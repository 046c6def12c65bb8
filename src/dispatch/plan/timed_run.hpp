#pragma once

#include <cstdint>

#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// Calls that take less than this are short: two readings of the clock would be a large part of
/// them.
inline constexpr uint64_t kShortCallNs = 2000;
/// After a short call, this many calls of the plan are not timed. If the implementation becomes
/// slow, every call is timed from the first slow one that is noticed.
inline constexpr uint32_t kUntimedCalls = 31;

/// Lets runs of a plan measure their duration. A call that takes longer than the breaker of the
/// implementation allows is reported to it.
void time_calls(CachedPlan& plan);

}  // namespace opmux::dispatch
