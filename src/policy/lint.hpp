#pragma once

#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Something about a policy that applies, but perhaps not as it was meant.
struct Finding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12"
  std::string rule;   ///< its name; may be empty
  std::string text;
};

/// Rules that can never match, whose field another always takes, that contradict others, that have
/// expired, or share a name; in the order of the rules.
std::vector<Finding> lint(const Policy& policy, const registry::RegistrySnapshot& known);

}  // namespace opmux::policy
