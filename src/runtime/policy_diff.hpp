#pragma once

#include <vector>

#include <opmux/lockfile.hpp>

#include "policy/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::runtime {

/// The decisions that differ between two sets of policies, for every operator: once where no
/// condition holds, and once for each condition alone. Considers policies and availability, but not
/// capabilities, because those depend on the arguments of calls.
std::vector<ChoiceChange> compare(const policy::PolicySet& from, const policy::PolicySet& to,
                                  const registry::RegistrySnapshot& registry);

}  // namespace opmux::runtime
