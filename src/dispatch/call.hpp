#pragma once

#include <opmux/call_site.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>

#include "dispatch/call_frame.hpp"
#include "dispatch/operator_slot.hpp"

namespace opmux::dispatch {

/// Calls an operator: null is ok. The fast path; no lock, no allocation, no clock, no string.
Status::Detail* call(OperatorSlot& slot, const CallSite& site, const ArgValue* values) noexcept;

/// Calls with settings of its own, and says what it did if `report` is not null.
Status::Detail* call_with(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                          const CallSettings& settings, CallReport* report) noexcept;

}  // namespace opmux::dispatch
