#pragma once

#include <string>
#include <string_view>

#include "policy/token.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Calls `visit(name, record)` for each operator that a rule's `op` matches, in order of name,
/// until one call returns true. Returns whether one did. Looks up names without '*', because policy
/// files can have thousands of rules.
template <class Visit>
bool any_operator_of(std::string_view op, const registry::RegistrySnapshot& known, Visit&& visit) {
  if (op.find('*') == op.npos) {
    const auto found = known.operators.find(op);
    return found != known.operators.end() && visit(found->first, *found->second);
  }
  for (const auto& [name, record] : known.operators) {
    if (glob_match(op, name) && visit(name, *record)) return true;
  }
  return false;
}

}  // namespace opmux::policy
