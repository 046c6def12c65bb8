#pragma once

#include <chrono>
#include <string_view>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

#include "policy/rules/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Predicts the effect of loading a policy text as the file of a runtime with these policies. Fails
/// as loading it would. Rules that are expired on `today` are treated as expired. `approve` asks
/// the validators of the program. The plugins of the runtime must be loaded.
Result<PolicyCheck> check_policy(std::string_view text, std::string_view name,
                                 const PolicyCheckOptions& options, const PolicySet& now,
                                 const registry::RegistrySnapshotPtr& known,
                                 std::chrono::sys_seconds today, const PolicyValidator& approve);

}  // namespace opmux::policy
