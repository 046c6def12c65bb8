#pragma once

#include "schema/schema.hpp"
#include "schema/token_stream.hpp"

namespace opmux::schema {

/// Parses "= value" after an argument whose type is known, if it follows. `= none` after an
/// optional argument means the same as no default. Returns false after an error, which `tokens`
/// keeps.
bool parse_default(TokenStream& tokens, ArgSpec& arg);

/// Takes a token of kind `integer` and stores its value; returns false if it does not fit.
bool parse_integer(TokenStream& tokens, int64_t& number, bool negative = false);

}  // namespace opmux::schema
