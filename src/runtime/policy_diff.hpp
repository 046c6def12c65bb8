#pragma once

#include <vector>

#include <opmux/lockfile.hpp>

#include "policy/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::runtime {

/// Which choices differ between two sets of policies, for every operator: where no condition of
/// theirs holds, and where each of their conditions holds alone. Looks at policies and at what is
/// available, not at capabilities: those depend on the arguments of calls.
std::vector<ChoiceChange> compare(const policy::PolicySet& from, const policy::PolicySet& to,
                                  const registry::RegistrySnapshot& registry);

}  // namespace opmux::runtime
