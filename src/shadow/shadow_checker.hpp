#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/health.hpp>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/clock.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/engine.hpp"
#include "health/health_view.hpp"
#include "policy/rules/policy_set.hpp"
#include "registry/publication.hpp"
#include "schema/arguments.hpp"
#include "shadow/online_tuner.hpp"
#include "shadow/shadow_tap.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::shadow {

/// The arguments of a copied call with separate memory for the results of another implementation.
class CallAgain {
 public:
  /// Outputs that `view` allows to widen become f32. Refers to the copy.
  CallAgain(const verify::CallCopy& copy, const verify::CallView& view);
  CallAgain(const CallAgain&) = delete;
  CallAgain& operator=(const CallAgain&) = delete;

  const schema::Arguments& arguments() const { return arguments_; }
  bool widened() const { return widened_; }
  /// The written values, in the order of the arguments.
  std::vector<std::vector<double>> results() const;
  /// The packed elements of the written tensors, in the order of the arguments.
  std::vector<std::vector<std::byte>> outputs() const;

 private:
  void place(size_t i, const verify::CopiedArgument& from, bool wide);

  const verify::CallCopy& copy_;
  schema::Arguments arguments_;
  bool widened_ = false;
  std::vector<TensorView> tensors_;
  std::vector<std::vector<std::byte>> memory_;  ///< memory of the written arguments
};

/// The result of comparing a copied call with the reference.
struct ShadowVerdict {
  Status compared;  ///< not ok: the reference did not run, and why
  std::optional<verify::Mismatch> mismatch = {};
  uint64_t reference_ns = 0;       ///< duration of the reference
  verify::Expected expected = {};  ///< the results of the reference
};

/// Runs the reference on a copied call and compares the results.
ShadowVerdict compare_with_reference(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                                     verify::JudgedCall& judged);

/// The first output element that is NaN or infinite although all inputs are finite.
std::optional<verify::Mismatch> not_finite(const verify::CallCopy& copy,
                                           const verify::CallView& view);

/// The shadow check of a runtime: the reference computes copies of sampled calls again, on a
/// background thread or inside tick(), and mismatches are reported. Thread-safe.
class ShadowChecker final : public dispatch::TapView, private SampleConsumer {
 public:
  /// The objects must outlive the ShadowChecker. `breaker_clock` is the clock of the breakers in
  /// `health`. Without `own_thread`, samples are compared inside tick().
  ShadowChecker(const base::Clock& clock, base::EventLog& log,
                const registry::SnapshotSource& registry, health::Health& health,
                const base::Clock& breaker_clock, bool own_thread);
  ~ShadowChecker() override;

  /// Sets the engine that runs the reference. Must be called before the first call is sampled.
  void attach(dispatch::Engine& engine) { engine_ = &engine; }
  /// Measures the copied calls too if the policy says so.
  OnlineTuner& tuner() { return tuner_; }
  const OnlineTuner& tuner() const { return tuner_; }

  std::shared_ptr<dispatch::CallTap> tap_of(
      const registry::OperatorRecord& op,
      const registry::ImplementationPtr& implementation) const override;
  uint64_t version() const override { return version_.load(std::memory_order_acquire); }

  /// Applies the shadow settings of these policies. Called before decisions are recomputed.
  void follow(const policy::PolicySet& policies);
  ShadowReport report() const;

  /// Compares queued samples that are due, unless the background thread does.
  void tick(uint64_t now_ns);
  /// Ends the background thread.
  void stop() { thread_.stop(); }
  /// Restarts the background thread after a fork.
  void revive() { thread_.revive(); }

  /// Sets the observer that is called for each mismatch after the event was logged; null: none. It
  /// must outlive all calls.
  void set_observer(verify::DivergenceObserver* observer) {
    observer_.store(observer, std::memory_order_release);
  }

 private:
  struct Known {
    std::map<uint32_t, std::weak_ptr<ShadowTap>> taps;  ///< by implementation number
    /// Counters by implementation id.
    std::map<std::string, std::shared_ptr<ShadowCounts>, std::less<>> counts;
    /// Last mismatch by implementation id.
    std::map<std::string, ShadowMismatch, std::less<>> last;
  };

  void turn(bool on);
  void wake() override;
  void look_at_opaque(const registry::ImplementationRecord& of, ShadowCounts& counts,
                      const schema::Signature& signature, dispatch::OpaqueRunner& runner) override;
  /// Compares one sample or, if the share is unlimited, all queued samples. Returns the time of the
  /// next comparison.
  uint64_t work(uint64_t now_ns);
  void look_at(const ShadowSample& sample);
  void log_not_finite(const ShadowSample& sample, const registry::ImplementationRecord& of,
                      const verify::JudgedCall& judged) const;
  /// Compares the duration of the call with that of the reference.
  void compare_times(const ShadowSample& sample, const registry::ImplementationRecord& of,
                     const schema::Schema& schema, verify::JudgedCall& judged,
                     uint64_t reference_ns);
  void log_mismatch(const ShadowSample& sample, const registry::ImplementationRecord& of,
                    const schema::Schema& schema, verify::JudgedCall& judged,
                    const verify::Mismatch& mismatch);
  /// Counts, reports and logs a mismatch of a class of calls, and opens its breaker if the policy
  /// says so. Returns the name of the class.
  std::string note_mismatch(const registry::ImplementationRecord& of, ShadowCounts& counts,
                            const schema::Signature& signature, uint64_t ended_ns,
                            ShadowMismatch found);

  base::EventLog& log_;
  const registry::SnapshotSource& registry_;
  health::Health& health_;
  const bool own_thread_;
  dispatch::Engine* engine_ = nullptr;
  OnlineTuner tuner_;
  mutable ShadowSite site_;
  mutable base::ForkGuarded<Known> known_;
  std::atomic<uint64_t> version_{0};
  std::atomic<double> share_{0};
  std::atomic<bool> opens_{true};
  std::atomic<verify::DivergenceObserver*> observer_{nullptr};
  /// Earliest time of the next comparison; used only by the comparing thread.
  uint64_t allowed_ns_ = 0;
  /// The same for functions of language bindings, which the calling threads compare.
  std::atomic<uint64_t> opaque_allowed_ns_{0};
  base::WokenJob job_;  ///< compares the queued samples
  base::Maintenance thread_;
};

/// The effective shadow options: each field from the strongest policy that sets it. Measuring
/// online needs copied calls, so that one in 1,024 is copied then unless a policy says otherwise.
ShadowOptions shadow_options(const policy::PolicySet& policies);
/// The setting of the strongest policy that has one; see Tuning.
Tuning tuning_mode(const policy::PolicySet& policies);

}  // namespace opmux::shadow
