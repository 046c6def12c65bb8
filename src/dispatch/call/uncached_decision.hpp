#pragma once

#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// A call asks at most this many states of its operator, each of which replaced the one before.
inline constexpr int kMostStates = 4;

/// True if a decision that was not cached could be cached by a new state of the operator. Logs that
/// the table of `space` is discarded, if that is the reason.
bool outgrown(const OperatorSlot& slot, const DecisionCache& space, Keeping keeping);

/// Counts a call whose decision is not cached, for the operator and for the implementation that was
/// chosen first, and logs the cause. `states` is the number of states
/// that the call asked.
void note_uncached(OperatorSlot& slot, const DecisionCache::Answer& answer, int states);

/// Ok if the decision is cached, else why the class of the call cannot be locked: "lock.class".
Status lockable(const OperatorSlot& slot, Keeping keeping);

}  // namespace opmux::dispatch
