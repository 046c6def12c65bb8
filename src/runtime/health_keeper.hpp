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

/// Connects breakers and device health to a runtime: publishes, logs and schedules their changes.
/// Thread-safe.
class HealthKeeper {
 public:
  /// Must outlive the HealthKeeper. The functions are called only after the runtime is constructed.
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
  /// The worst breaker state of each implementation that has a breaker.
  std::map<std::string, BreakerState> states();
  /// Called when policies or registrations changed.
  void limits_changed();
  /// Advances the breakers' clock for programs that supply their time through tick().
  void tick(uint64_t now_ns) { clock_.tick(now_ns); }
  /// The clock of the breakers.
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
  std::atomic<int> wake_{-1};  ///< eventfd of the job in this process
};

/// The limits that the policies set for a breaker. Each field comes from the strongest layer that
/// sets it. Within a layer, the first unconditional rule for the implementation precedes the
/// general settings.
health::BreakerLimits breaker_limits(const policy::PolicySet& policies, std::string_view op,
                                     const policy::Subject& subject);
/// Whether any policy requires timed calls.
bool times_calls(const policy::PolicySet& policies);

}  // namespace opmux::runtime
