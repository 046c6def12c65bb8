#pragma once

#include <string>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Checks a condition independently of an operator. Returns an error text for an unknown ambient
/// word, a multiple of zero, an alignment that is not a power of two, a layout that is not a
/// permutation, or a tree that is too deep or too large. Empty if the condition is valid.
std::string condition_problem(const Condition& condition);

}  // namespace opmux::policy
