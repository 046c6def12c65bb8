#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include <opmux/status.hpp>

#include "dispatch/engine.hpp"
#include "dispatch/guarded_plan.hpp"

namespace opmux::dispatch {

enum class PlanState : uint32_t { current, stale, revoked };

/// What a bound plan shares with the engine: the arguments it was decided for, and the word that
/// says whether it may still run.
struct PlanControl {
  OperatorSlot* slot = nullptr;
  uint64_t context = 0;
  uint64_t plan_id = 0;
  registry::ImplementationPtr implementation;
  uint32_t tag = 0;
  std::atomic<PlanState> word{PlanState::current};
  /// The operator was compiled anew: decisions may depend on more than the plan's guard compares.
  std::atomic<bool> guard_outdated{false};
  std::atomic<uint64_t> considered{0};  ///< serial of the state that was asked last
  PlanRoll::Place* place = nullptr;     ///< among those that a fork may end

  base::ForkMutex counting;             ///< held while somebody follows the pointer below
  const GuardedPlan* counts = nullptr;  ///< whose calls were not yet handed over

  // The example, owned.
  registry::Arguments arguments;
  registry::BoundDims dims;
  std::array<TensorView, OPMUX_MAX_ARGS> tensors;

  PlanControl() = default;
  ~PlanControl() {
    if (place != nullptr) place->store(nullptr, std::memory_order_release);
  }
  PlanControl(const PlanControl&) = delete;
  PlanControl& operator=(const PlanControl&) = delete;

  PlanState state() const { return word.load(std::memory_order_acquire); }
  /// Decides again for the example and sets the word. Revoked stays revoked.
  void reconsider();
  void keep(const registry::Arguments& given, const registry::BoundDims& bound);
};

/// A decision kept by the program: called without a lookup. Belongs to one thread at a time.
class BoundPlan {
 public:
  struct Options {
    CallSettings settings;
    bool for_capture = false;
  };
  static Result<std::unique_ptr<BoundPlan>> bind(OperatorSlot& slot, const CallSite& site,
                                                 const ArgValue* values, const Options& options);
  ~BoundPlan();
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  /// Checks that the plan may run and fits, then runs it: null is ok.
  Status::Detail* call(const CallSite& site, const ArgValue* values) noexcept;
  /// The same without looking at the arguments, which set_frame() put there before.
  Status::Detail* run_unchecked() noexcept;
  /// Puts arguments into the frame for run_unchecked; fails as call() does.
  Status set_frame(const CallSite& site, const ArgValue* values);

  /// A plan for the same arguments as they would be decided now; this one stays as it is.
  Result<std::unique_ptr<BoundPlan>> decided_anew() const;

  PlanState state() const { return control_->state(); }
  const PlanControl& control() const { return *control_; }
  uint64_t generation() const { return guarded_.pinned->generation; }

 private:
  BoundPlan() = default;
  Status decide(const CallSite& site, const ArgValue* values);
  Status prepare(const registry::Signature& signature, const PlanRecord& plan);
  bool accepts(const CallSite& site, const ArgValue* values);
  /// Compares from now on what decisions depend on now, with the values of the example.
  void renew_guard();
  /// Why it does not run. `values` may be null if only revocation is in question.
  Status::Detail* refuse(const CallSite& site, const ArgValue* values) const;
  Status::Detail* revoked() const;
  Status::Detail* run_at(ThreadBlock& block, uint32_t depth) noexcept;
  Status::Detail* run_elsewhere() noexcept;
  Status::Detail* finish(int32_t outcome) const;

  Options options_;
  OperatorSlot* slot_ = nullptr;
  std::shared_ptr<PlanControl> control_;
  PreparedPtr prepared_;
  std::unique_ptr<std::byte[]> memory_, workspace_;
  registry::DimChecks checks_;
  GuardedPlan guarded_;
  std::shared_ptr<const std::vector<GuardFacts>> renewed_guards_;
  PlanRecord renewed_;  ///< what it was bound with, with one of these guards
};

}  // namespace opmux::dispatch
