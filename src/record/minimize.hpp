#pragma once

#include <functional>

#include "record/recording.hpp"
#include "registry/schema.hpp"

namespace opmux::record {

/// Whether a call still goes wrong. Asked only of calls that fit the schema.
using StillWrong = std::function<bool(const Recording& smaller)>;

/// Looks for the smallest dimensions with which a call still goes wrong: halves each of them, then
/// takes smaller steps down to one, while the schema's equalities and `where` hold. Elements are
/// those of the first rows and columns. Dimensions that a condition ties together shrink together.
/// Asks at most `most` times; `asked` says how often it did.
Recording minimize(const registry::Schema& schema, Recording recording, const StillWrong& wrong,
                   size_t most, size_t& asked);

}  // namespace opmux::record
