#pragma once

#include <cstdint>

#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// Calls that take less than this are short: two readings of the clock, which take up to 80 ns,
/// would be more than 1 % of them. After a short call, about as many calls of the plan are not
/// timed as run in this time, at most kUntimedCalls. If the implementation becomes slow, every call
/// is timed from the first slow one that is noticed.
inline constexpr uint64_t kShortCallNs = 8000;
inline constexpr uint32_t kUntimedCalls = 127;

/// The number of calls that are not timed after one that took `took_ns`.
constexpr uint32_t untimed_after(uint64_t took_ns) {
  if (took_ns >= kShortCallNs) return 0;
  if (took_ns <= kShortCallNs / kUntimedCalls) return kUntimedCalls;
  return static_cast<uint32_t>(kShortCallNs / took_ns);
}
static_assert(untimed_after(0) == 127 && untimed_after(100) == 80 && untimed_after(8000) == 0);

/// The same for an implementation. A timed call on a stream waits for the device, so that one in
/// kUntimedCalls is timed, however long it takes.
inline uint32_t untimed_after(const registry::ImplementationRecord& implementation,
                              uint64_t took_ns) {
  return implementation.backend->history() != nullptr ? kUntimedCalls : untimed_after(took_ns);
}
/// False for a call on a stream while a graph is captured, which would contain the events.
/// `context` has the ambient facts of the call in its lower half.
inline bool may_be_timed(const registry::ImplementationRecord& implementation, uint64_t context) {
  return implementation.backend->history() == nullptr || (context & schema::kCapturing) == 0;
}

/// Lets runs of a plan measure their duration. A call that takes longer than the breaker of the
/// implementation allows is reported to it.
void time_calls(CachedPlan& plan);

}  // namespace opmux::dispatch
