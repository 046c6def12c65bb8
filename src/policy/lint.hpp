#pragma once

#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "registry/snapshot.hpp"

namespace opmux::policy {

/// A suspicious rule in a valid policy.
struct Finding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12"
  std::string rule;   ///< the rule's name; may be empty
  std::string text;
};

/// Finds rules that can never match, whose fields a stronger rule always overrides, that contradict
/// others, that have expired or that share a name. In the order of the rules.
std::vector<Finding> lint(const Policy& policy, const registry::RegistrySnapshot& known);

}  // namespace opmux::policy
