#pragma once

#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/rules/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// A difference between the first choices of two sets of policies.
struct EffectChange {
  std::string op, when;  ///< empty `when`: calls for which no condition is true
  std::string from, to;  ///< ids; empty: nothing that can run is left
  std::string because;   ///< cause of the difference
  std::string by;        ///< origin of the ranking in the second set, else of its first drop
};

/// The decisions that differ between two sets of policies, for every operator: once where no
/// condition holds, and once for each condition alone. Considers policies and what can run on this
/// machine, but not capabilities that depend on the arguments of calls.
std::vector<EffectChange> compare(const PolicySet& from, const PolicySet& to,
                                  const registry::RegistrySnapshot& registry);

}  // namespace opmux::policy
