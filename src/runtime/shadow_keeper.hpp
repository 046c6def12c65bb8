#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <opmux/health.hpp>
#include <opmux/policy.hpp>

#include "base/clock.hpp"
#include "base/fork_guarded.hpp"
#include "dispatch/engine.hpp"
#include "policy/policy_set.hpp"
#include "registry/registry.hpp"
#include "runtime/health_keeper.hpp"
#include "runtime/maintenance.hpp"
#include "runtime/shadow_tap.hpp"
#include "telemetry/event_log.hpp"
#include "verify/divergence.hpp"

namespace opmux::runtime {

/// The shadow check of a runtime: copies of some calls are computed again by the reference, on a
/// thread of its own or inside tick(), and what differs is told. Thread-safe.
class ShadowKeeper final : public dispatch::TapView {
 public:
  /// Everything outlives it, and is asked only while calls run.
  struct Parts {
    const base::Clock* clock = nullptr;
    telemetry::EventLog* log = nullptr;
    std::function<dispatch::Engine&()> engine;
    HealthKeeper* health = nullptr;
    std::function<registry::RegistrySnapshotPtr()> registry;
    bool own_thread = true;
  };
  explicit ShadowKeeper(Parts parts);
  ~ShadowKeeper() override;

  std::shared_ptr<dispatch::CallTap> tap_of(
      const registry::OperatorRecord& op,
      const registry::ImplementationPtr& implementation) const override;
  uint64_t version() const override { return version_.load(std::memory_order_acquire); }

  /// Takes the settings of these policies; before decisions are made anew.
  void follow(const policy::PolicySet& policies);
  ShadowReport report() const;

  /// Compares what waits and is due, unless a thread of its own does.
  void tick(uint64_t now_ns);
  /// Ends the thread.
  void stop() { thread_.stop(); }
  /// After a fork.
  void revive() { thread_.revive(); }

  /// Who is told of each mismatch, after the event; null: nobody. Outlives the calls.
  void set_witness(verify::Witness* witness) { witness_.store(witness, std::memory_order_release); }

 private:
  class Job;
  struct Known {
    std::map<uint32_t, std::weak_ptr<ShadowTap>> taps;  ///< by number of their implementation
    std::map<std::string, std::shared_ptr<ShadowCounts>, std::less<>> counts;  ///< by id
    std::map<std::string, ShadowMismatch, std::less<>> last;                   ///< by id
  };

  void turn(bool on);
  void wake();
  /// Compares one call or, without a limit, all that wait; returns when it may do the next.
  uint64_t work(uint64_t now_ns);
  void look_at(const ShadowSample& sample);
  void tell_not_finite(const ShadowSample& sample, const registry::ImplementationRecord& of,
                       const verify::JudgedCall& judged) const;
  void tell_mismatch(const ShadowSample& sample, const registry::ImplementationRecord& of,
                     const registry::Schema& schema, verify::JudgedCall& judged,
                     const verify::Mismatch& mismatch);

  Parts parts_;
  mutable ShadowSite site_;
  mutable base::ForkGuarded<Known> known_;
  std::atomic<uint64_t> version_{0};
  std::atomic<double> share_{0};
  std::atomic<bool> opens_{true};
  std::atomic<verify::Witness*> witness_{nullptr};
  uint64_t allowed_ns_ = 0;  ///< when the share lets it compare again; of whoever works
  std::atomic<bool> started_{false};
  std::atomic<int> wake_{-1};  ///< descriptor of this process's job
  Maintenance thread_;
};

/// What the policies say of the shadow check: field by field, the strongest that sets one.
ShadowOptions shadow_options(const policy::PolicySet& policies);

}  // namespace opmux::runtime
