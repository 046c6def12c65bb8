#pragma once

#include <string>

#include "conformance/shaper.hpp"

/// Shared by attention and paged_attention.
namespace opmux::conformance::operators {

/// Sets heads, head sizes and the scalars that both operators have.
void shape_heads(Draft& draft);

/// Scales queries and keys so that exponentials of their products do not overflow.
void fill_queries(Draft& draft, const std::string& queries, const std::string& keys);

}  // namespace opmux::conformance::operators
