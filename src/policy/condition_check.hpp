#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// What is wrong with a condition whatever the operator: an unknown ambient word, a multiple of
/// zero, an alignment that is no power of two, a layout that is no permutation, a tree too deep or
/// too large. Empty if nothing is.
std::string condition_problem(const Condition& condition);

/// "0213" as registry::layout_of packs it; nothing if it is no permutation of at most 8 digits.
std::optional<int64_t> packed_layout(std::string_view order);

}  // namespace opmux::policy
