#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "dispatch/decide/locked_choices.hpp"
#include "dispatch/engine.hpp"
#include "policy/rules/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::dispatch {

/// The state that a lockfile is made from and compared with.
struct LockSurroundings {
  registry::RegistrySnapshotPtr registry;
  std::shared_ptr<const policy::PolicySet> policies;
};

/// Hash of the policies' effect on the existing operators, as 16 hexadecimal digits.
std::string policy_hash(const LockSurroundings& now);

/// Converts decisions to the sorted choices of a lockfile.
Lockfile lockfile_of(const std::vector<Engine::DecidedClass>& decided, const LockSurroundings& now);

/// Converts a lockfile to the form in which decisions look up its choices. Fails with `failed`,
/// "lock.misfit" and a list of all differences if the lockfile was written for another policy, for
/// other operators or implementations, or for implementations that may not run here.
Result<std::shared_ptr<const LockSet>> fit(const Lockfile& lock, std::string_view name,
                                           const LockSurroundings& now);

}  // namespace opmux::dispatch
