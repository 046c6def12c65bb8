#pragma once

#include "registry/schema.hpp"
#include "registry/token_stream.hpp"

namespace opmux::registry {

/// Parses "= value" after an argument whose type is known, if there is one. `= none` of an optional
/// argument says what no default says. False after an error in `tokens`.
bool parse_default(TokenStream& tokens, ArgSpec& arg);

/// The number of a token of kind `integer`, which it takes; false if it does not fit.
bool parse_integer(TokenStream& tokens, int64_t& number, bool negative = false);

}  // namespace opmux::registry
