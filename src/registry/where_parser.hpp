#pragma once

#include "registry/schema.hpp"
#include "registry/token_stream.hpp"

namespace opmux::registry {

/// Parses the condition after `where`, up to the first token that cannot belong to it, and appends
/// its conjuncts to `schema`. All arguments of `schema` must be parsed already. Returns false after
/// an error, which `tokens` keeps.
bool parse_where(TokenStream& tokens, Schema& schema);

}  // namespace opmux::registry
