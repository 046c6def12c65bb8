#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <opmux/health.hpp>
#include <opmux/policy.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/clock.hpp"
#include "base/system/process.hpp"
#include "dispatch/engine.hpp"
#include "health/health_view.hpp"
#include "policy/policy_source.hpp"
#include "policy/rules/policy_set.hpp"
#include "policy/rules/token.hpp"
#include "registry/publication.hpp"

namespace opmux::runtime {

/// A clock that a program with simulated time can advance. Between two ticks it advances by at
/// least the difference of their times. Thread-safe.
class TickedClock final : public base::Clock {
 public:
  explicit TickedClock(const base::Clock& clock) : clock_(clock) {}

  uint64_t now_ns() const override {
    return clock_.now_ns() + ahead_ns_.load(std::memory_order_relaxed);
  }
  /// The first tick defines the start of the program's time. A first tick that is at most an hour
  /// ahead of the real clock counts as the same time scale.
  void tick(uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    const uint64_t real = clock_.now_ns();
    if (!ticked_) {
      last_ns_ = now_ns();
      last_tick_ns_ = time_ns >= real && time_ns - real < kAnHour ? real : time_ns;
      ticked_ = true;
    }
    const uint64_t passed = time_ns > last_tick_ns_ ? time_ns - last_tick_ns_ : 0;
    last_ns_ = std::max(now_ns(), last_ns_ + passed);
    last_tick_ns_ = std::max(last_tick_ns_, time_ns);
    ahead_ns_.store(last_ns_ - std::min(real, last_ns_), std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kAnHour = 3'600'000'000'000;

  const base::Clock& clock_;
  base::ForkMutex mutex_;
  bool ticked_ = false;
  /// The time of the last tick, on the program's clock and on this one.
  uint64_t last_tick_ns_ = 0, last_ns_ = 0;
  std::atomic<uint64_t> ahead_ns_{0};
};

/// Connects breakers and device health to a runtime: publishes, logs and schedules their changes.
/// Thread-safe.
class HealthMonitor final : private health::BreakerHost {
 public:
  /// All of them must outlive the HealthMonitor.
  HealthMonitor(const base::Clock& clock, base::EventLog& log, base::Maintenance& maintenance,
                const registry::SnapshotSource& registry, const policy::PolicySource& policies);
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;
  ~HealthMonitor() override;

  /// Sets the engine whose decisions depend on the breakers. Must be called before the first call.
  void attach(dispatch::Engine& engine) { engine_ = &engine; }

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
  void publish(const std::string& op) override { engine_->operator_changed(op); }
  health::BreakerLimits limits_of(const health::BreakerEntry& entry) const override;
  std::shared_ptr<const schema::Schema> schema_of(const std::string& op) const override;
  void tell(const health::BreakerNotice& notice) override;
  void wake() override { job_.wake(); }
  /// Makes the transitions of breakers that are due. Returns when the next one is.
  uint64_t advance_breakers(uint64_t now_ns);
  /// Prepares the breaker of an implementation whose calls must be timed. Returns whether it did.
  bool time_if_limited(const registry::ImplementationRecord& implementation,
                       const policy::PolicySet& policies);

  /// The registry and the policies from which the limits were last determined.
  struct LimitSources {
    registry::RegistrySnapshotPtr registry;
    std::shared_ptr<const policy::PolicySet> policies;
  };

  void apply_limits(const LimitSources& before, const registry::RegistrySnapshot& snapshot,
                    const policy::PolicySet& policies);

  base::EventLog& log_;
  const registry::SnapshotSource& registry_;
  const policy::PolicySource& policies_;
  dispatch::Engine* engine_ = nullptr;
  TickedClock clock_;
  health::Health health_;
  base::Published<std::vector<BreakerListener>> listeners_;
  base::WokenJob job_;
  base::ForkGuarded<LimitSources> applied_;
};

/// The limits that the policies set for a breaker. Each field comes from the strongest layer that
/// sets it. Within a layer, the first unconditional rule for the implementation precedes the
/// general settings.
health::BreakerLimits breaker_limits(const policy::PolicySet& policies, std::string_view op,
                                     const policy::Subject& subject);
/// Whether any policy requires timed calls.
bool times_calls(const policy::PolicySet& policies);

}  // namespace opmux::runtime
