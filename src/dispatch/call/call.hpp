#pragma once

#include <opmux/detail/call_site.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// Calls an operator. Returns null on success, otherwise an error that the caller owns. On the fast
/// path it takes no lock, allocates nothing, reads no clock and builds no string.
OPMUX_API Status::Detail* call(OperatorSlot& slot, const CallSite& site,
                               const ArgValue* values) noexcept;

/// call() for at most four arguments, tensors first, each passed in a register. Most operators have
/// this form. `site` is CallSite::word().
template <int kTensors, int kScalars>
OPMUX_API Status::Detail* call_words(OperatorSlot& slot, uint64_t site, uint64_t a, uint64_t b,
                                     uint64_t c, uint64_t d) noexcept;

/// call() for arguments that include a constant; the plan runs with the constant's packed copy.
OPMUX_API Status::Detail* call_with_constants(OperatorSlot& slot, const CallSite& site,
                                              const ArgValue* values) noexcept;

/// call() with options for this call. Fills in `report` if it is not null.
Status::Detail* call_with(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                          const CallSettings& settings, CallReport* report) noexcept;

}  // namespace opmux::dispatch
