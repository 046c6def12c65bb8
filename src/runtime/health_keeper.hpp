#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include <opmux/health.hpp>
#include <opmux/policy.hpp>

#include "base/clock.hpp"
#include "base/published.hpp"
#include "dispatch/engine.hpp"
#include "health/health.hpp"
#include "policy/policy_set.hpp"
#include "policy/token.hpp"
#include "registry/registry.hpp"
#include "runtime/maintenance.hpp"
#include "runtime/ticked_clock.hpp"
#include "telemetry/event_log.hpp"

namespace opmux::runtime {

/// Health as a runtime has it: who is published, told and woken when it changes. Thread-safe.
class HealthKeeper {
 public:
  /// Everything outlives it, and is asked only while calls run.
  struct Parts {
    const base::Clock* clock = nullptr;
    telemetry::EventLog* log = nullptr;
    std::function<dispatch::Engine&()> engine;
    std::function<Maintenance&()> maintenance;
    std::function<registry::RegistrySnapshotPtr()> registry;
    std::function<std::shared_ptr<const policy::PolicySet>()> policies;
  };
  explicit HealthKeeper(Parts parts);
  HealthKeeper(const HealthKeeper&) = delete;
  HealthKeeper& operator=(const HealthKeeper&) = delete;
  ~HealthKeeper();

  health::Health& view() { return health_; }

  HealthReport report();
  /// The worst state of each implementation that failed lately.
  std::map<std::string, BreakerState> states();
  /// Policies or registrations are others now.
  void limits_changed();
  /// The time of a program that has one of its own.
  void tick(uint64_t now_ns) { clock_.tick(now_ns); }
  /// The time that breakers go by.
  const base::Clock& clock() const { return clock_; }
  void on_breaker(BreakerListener listener);
  Status force(std::string_view implementation, BreakerForce what);

 private:
  class Job;
  void tell(const health::BreakerNotice& notice);
  void wake();

  Parts parts_;
  TickedClock clock_;
  health::Health health_;
  base::Published<std::vector<BreakerListener>> listeners_;
  std::atomic<bool> started_{false};
  std::atomic<int> wake_{-1};  ///< descriptor of this process's job
};

/// The numbers that policies give a breaker: field by field, the strongest layer that sets one. Of
/// a layer the first rule without a condition that is about the implementation, then its general
/// ones.
health::BreakerLimits breaker_limits(const policy::PolicySet& policies, std::string_view op,
                                     const policy::Subject& subject);
/// Whether the policies have calls of anything timed.
bool times_calls(const policy::PolicySet& policies);

}  // namespace opmux::runtime
