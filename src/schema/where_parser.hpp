#pragma once

#include "schema/schema.hpp"
#include "schema/token_stream.hpp"

namespace opmux::schema {

/// Parses the condition after `where`, up to the first token that cannot belong to it, and appends
/// its conjuncts to `schema`. All arguments of `schema` must be parsed already. Returns false after
/// an error, which `tokens` keeps.
bool parse_where(TokenStream& tokens, Schema& schema);

}  // namespace opmux::schema
