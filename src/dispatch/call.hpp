#pragma once

#include <opmux/call_site.hpp>
#include <opmux/export.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>

#include "dispatch/call_frame.hpp"
#include "dispatch/operator_slot.hpp"

namespace opmux::dispatch {

/// Calls an operator: null is ok. The fast path; no lock, no allocation, no clock, no string.
OPMUX_API Status::Detail* call(OperatorSlot& slot, const CallSite& site,
                               const ArgValue* values) noexcept;

/// The same for at most four arguments, tensors first, each in a register: what most operators look
/// like. `site` is CallSite::word().
template <int kTensors, int kScalars>
OPMUX_API Status::Detail* call_words(OperatorSlot& slot, uint64_t site, uint64_t a, uint64_t b,
                                     uint64_t c, uint64_t d) noexcept;

/// The same with a constant among the arguments, whose packed copy the plan runs with.
OPMUX_API Status::Detail* call_with_constants(OperatorSlot& slot, const CallSite& site,
                                              const ArgValue* values) noexcept;

/// Calls with settings of its own, and says what it did if `report` is not null.
Status::Detail* call_with(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                          const CallSettings& settings, CallReport* report) noexcept;

}  // namespace opmux::dispatch
