#pragma once

#include <vector>

#include <opmux/health.hpp>

#include "policy/rules/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// The operators of which no implementation is left that can run, by name: where no condition holds
/// or, if something is left there, where one condition alone holds. Operators without any
/// implementation are skipped. Runs no probe.
std::vector<OperatorWithoutCandidates> find_shortages(const PolicySet& policies,
                                                      const registry::RegistrySnapshot& registry);

}  // namespace opmux::policy
