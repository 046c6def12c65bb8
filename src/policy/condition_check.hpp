#pragma once

#include <string>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// What is wrong with a condition whatever the operator: an unknown ambient word, a multiple of
/// zero, an alignment that is no power of two, a layout that is no permutation, a tree too deep or
/// too large. Empty if nothing is.
std::string condition_problem(const Condition& condition);

}  // namespace opmux::policy
