#pragma once

#include <cstdint>
#include <memory>

#include <opmux/explanation.hpp>
#include <opmux/policy.hpp>

#include "base/locks.hpp"
#include "crash/quarantine_manager.hpp"
#include "dispatch/engine.hpp"
#include "policy/policy_source.hpp"
#include "registry/publication.hpp"
#include "runtime/jobs/health_monitor.hpp"
#include "shadow/shadow_checker.hpp"

namespace opmux::runtime {

/// Publishes the registry, policies, lock and selector of a runtime to its engine. Publications are
/// serialized: each reads its sources under the lock that it publishes under, so that the last of
/// several concurrent writers publishes the newest sources. Thread-safe; a forked child finds the
/// lock free.
class Publisher final : public registry::Publisher {
 public:
  /// The lock of a frozen runtime.
  struct Lock {
    Lockfile file;
    std::shared_ptr<const dispatch::LockSet> set;  ///< null unless frozen
  };

  /// All of them must outlive the publisher.
  Publisher(const registry::SnapshotSource& registry, const policy::PolicySource& policies,
            crash::QuarantineManager& quarantine, shadow::ShadowChecker& shadow,
            HealthMonitor& health, dispatch::Engine& engine)
      : registry_(registry),
        policies_(policies),
        quarantine_(quarantine),
        shadow_(shadow),
        health_(health),
        engine_(engine) {}

  std::unique_ptr<registry::Publication> begin() override;
  void stop_withdrawn() noexcept override;
  /// Publishes the newest sources without a change; returns the new generation.
  uint64_t publish();

  std::shared_ptr<const Lock> lock() const { return lock_.get(); }
  /// Stores the lock and publishes. Throws std::bad_alloc, and changes nothing, if there is not
  /// enough memory; so does set_selector().
  void set_lock(Lock lock);
  /// Stores the selector and publishes. Null removes the selector.
  void set_selector(std::shared_ptr<const Selector> selector);

 private:
  class EnginePublication;
  dispatch::Engine::Sources latest();
  template <class T>
  void set(base::Published<T>& published, T value);

  const registry::SnapshotSource& registry_;
  const policy::PolicySource& policies_;
  crash::QuarantineManager& quarantine_;
  shadow::ShadowChecker& shadow_;
  HealthMonitor& health_;
  dispatch::Engine& engine_;
  base::Published<Lock> lock_;
  base::Published<std::shared_ptr<const Selector>> selector_;
  base::ForkMutex publishing_;  ///< taken before every lock of the engine
};

}  // namespace opmux::runtime
