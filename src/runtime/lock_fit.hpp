#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/lockfile.hpp>

#include "dispatch/engine.hpp"
#include "dispatch/locked_choices.hpp"
#include "policy/policy_set.hpp"
#include "registry/snapshot.hpp"

namespace opmux::runtime {

/// What a lockfile is written from and read against.
struct LockSurroundings {
  registry::RegistrySnapshotPtr registry;
  std::shared_ptr<const policy::PolicySet> policies;
};

/// Of what the policies mean for the operators there are: 16 hexadecimal digits.
std::string policy_hash(const LockSurroundings& now);

/// The choices as a lockfile has them, sorted.
Lockfile lockfile_of(const std::vector<dispatch::Engine::DecidedClass>& decided,
                     const LockSurroundings& now);

/// The choices of a lockfile as decisions look them up. Fails with `failed`, "lock.misfit" and all
/// differences if it was written for another policy, for other operators or implementations, or for
/// what may not run here.
Result<std::shared_ptr<const dispatch::LockSet>> fit(const Lockfile& lock, std::string_view name,
                                                     const LockSurroundings& now);

}  // namespace opmux::runtime
