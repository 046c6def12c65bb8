#pragma once

#include <string>

#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"

namespace opmux::dispatch {

/// Makes the decision for these arguments as a call would, and returns all verdicts and reasons.
/// Runs nothing.
Result<Explanation> explain(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                            uint32_t tag);

/// An explanation that only has a note with the error.
Explanation not_explained(const OperatorSlot& slot, const Status& status);

/// Formats arguments as "y=bf16[32,4096] x=bf16[32,4096] eps=1e-06". Omits absent arguments.
std::string describe_arguments(const schema::Schema& schema, const schema::Arguments& arguments);

/// Formats what describe() reported as "packed_bytes 4096, format panels".
std::string describe_instance(const Attributes& attributes);

}  // namespace opmux::dispatch
