#pragma once

#include <string>

#include "conformance/shaper.hpp"

/// What both attentions draw alike.
namespace opmux::conformance::operators {

/// Heads, head sizes and the numbers that both attentions have.
void shape_heads(Draft& draft);

/// Queries and keys whose products stay within what an exponential can take.
void fill_queries(Draft& draft, const std::string& queries, const std::string& keys);

}  // namespace opmux::conformance::operators
