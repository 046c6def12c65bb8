#pragma once

#include <opmux/status.hpp>

#include "dispatch/operator_slot.hpp"
#include "registry/arguments.hpp"

namespace opmux::dispatch {

/// Runs the operator's reference on arguments of the caller's own, beside all calls: nothing is
/// counted or remembered, nobody stands in, and it stays on this thread. Whom a policy requires or
/// prefers does not matter; a reference that is denied does not run. Fails with `no_candidate`,
/// "dispatch.no_reference", if there is none or it may not run; else as the reference ended.
Status run_reference(OperatorSlot& slot, const registry::Arguments& arguments, uint32_t tag);

}  // namespace opmux::dispatch
