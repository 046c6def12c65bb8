#pragma once

#include <opmux/detail/call_site.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// Arguments that were checked against the schema, with their dimensions.
struct CheckedArguments {
  schema::Arguments arguments;
  schema::BoundDims dims;
  bool empty = false;  ///< all outputs have zero elements, so there is nothing to run
};
Status check(const schema::Schema& schema, const CallSite& site, const ArgValue* values,
             CheckedArguments& checked);

/// The error for a call nested deeper than kMaxDepth.
Status too_deep(const OperatorSlot& slot);
/// Refuses a call that this thread makes from inside a function that the call could wait for: from
/// a NoCallbackGuard ("runtime.callback"), or from a PreparationGuard of the same operator
/// ("call.reentrant"). Calls that a cached plan accepts wait for nothing and are not refused.
Status refuse_reentry(const OperatorSlot& slot);
/// Refuses an operator that only a language binding can call ("call.opaque").
Status refuse_opaque(const schema::Schema& schema);
/// The error for an operator whose runtime was destroyed.
Status withdrawn(const OperatorSlot& slot);

}  // namespace opmux::dispatch
