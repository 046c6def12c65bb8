#pragma once

#include <functional>

#include "replay/recording.hpp"
#include "schema/schema.hpp"

namespace opmux::replay {

/// Returns true if the call still fails or diverges. Called only for calls that fit the schema.
using StillWrong = std::function<bool(const Recording& smaller)>;

/// Searches for the smallest dimensions with which a call still goes wrong. Halves each dimension,
/// then reduces it in smaller steps down to 1, as long as the schema accepts the call. Keeps the
/// elements of the first rows and columns. Dimensions that one `where` clause relates shrink
/// together. Calls `wrong` at most `most` times; `asked` receives the number of calls.
Recording minimize(const schema::Schema& schema, Recording recording, const StillWrong& wrong,
                   size_t most, size_t& asked);

}  // namespace opmux::replay
