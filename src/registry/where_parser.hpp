#pragma once

#include "registry/schema.hpp"
#include "registry/token_stream.hpp"

namespace opmux::registry {

/// Parses what follows `where` up to the first token that cannot belong to it, and appends its
/// conjuncts to `schema`, whose arguments must be complete. False after an error in `tokens`.
bool parse_where(TokenStream& tokens, Schema& schema);

}  // namespace opmux::registry
