#pragma once

#include <opmux/status.hpp>

#include "dispatch/operator_slot.hpp"
#include "registry/arguments.hpp"

namespace opmux::dispatch {

/// Runs the operator's reference implementation, independent of normal calls: the run is not
/// counted, nothing is cached, there is no fallback, and only the calling thread is used. Policy
/// rules that require or prefer implementations are ignored, but a denied reference does not run.
/// Fails with `no_candidate`, "dispatch.no_reference", if no reference can run; otherwise returns
/// the outcome of the reference.
Status run_reference(OperatorSlot& slot, const registry::Arguments& arguments, uint32_t tag);

}  // namespace opmux::dispatch
