#pragma once

#include "schema/expressions/token_stream.hpp"
#include "schema/schema.hpp"

namespace opmux::schema {

/// Parses all remaining tokens as the condition after `where` and appends its conjuncts to
/// `schema`. All arguments of `schema` must be parsed already. Returns false after an error, which
/// `tokens` keeps.
bool parse_where(TokenStream& tokens, Schema& schema);

}  // namespace opmux::schema
