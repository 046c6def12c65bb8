#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include <opmux/detail/hot_plan.hpp>

#include "dispatch/decide/evaluation.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/packed_constant.hpp"

namespace opmux::dispatch {

/// current: a new decision would choose the same implementation. stale: it would choose another,
/// but this one may still run. revoked: the implementation must not run any more.
enum class PlanState : uint32_t { current, stale, revoked };
static_assert(static_cast<uint32_t>(PlanState::revoked) == detail::HotPlan::kRevoked);

/// The part of a bound plan that it shares with the engine: the example arguments it was decided
/// for, and whether it may still run. The engine evaluates it again after every publication; after
/// other changes it marks the plan as outdated, and the next call or state() evaluates it.
struct BoundPlanState {
  OperatorSlot* slot = nullptr;
  uint64_t context = 0;
  uint64_t plan_id = 0;
  registry::ImplementationPtr implementation;
  uint32_t tag = 0;
  int32_t threads = 0;  ///< that its calls may use
  detail::HotPlan hot;  ///< its `state` says whether the plan may still run
  std::atomic<PlanState> unwatched{
      PlanState::current};                             ///< the state while `hot.state` is kWatched
  std::atomic<bool> armed{false};                      ///< the breaker records every outcome
  std::atomic<const health::Breaker*> timer{nullptr};  ///< limits durations; null: not timed
  /// Set when the operator was recompiled: decisions may now depend on facts that the plan's guard
  /// does not compare.
  std::atomic<bool> guard_outdated{false};
  std::atomic<uint64_t> considered{0};  ///< serial of the CompiledOperator evaluated last
  PlanList::Place* place = nullptr;     ///< entry in the list of fork-sensitive plans; may be null

  /// The counters that `hot.calls` belongs to; null once it was added to them. Guarded by the lock
  /// of ThreadList.
  ImplementationCounters* counts_for = nullptr;

  // The example arguments, owned.
  schema::Arguments arguments;
  schema::BoundDims dims;
  std::array<TensorView, OPMUX_MAX_ARGS> tensors;
  std::vector<std::shared_ptr<const PackedConstant>> constants;
  /// Better candidates that could not be prepared for the example.
  std::vector<registry::ImplementationPtr> passed_over;

  BoundPlanState() = default;
  ~BoundPlanState() {
    if (place != nullptr) place->store(nullptr, std::memory_order_release);
  }
  BoundPlanState(const BoundPlanState&) = delete;
  BoundPlanState& operator=(const BoundPlanState&) = delete;

  /// Evaluates an outdated plan. Thread-safe.
  PlanState state();
  bool revoked() const { return hot.load_state() == detail::HotPlan::kRevoked; }
  bool outdated() const { return hot.load_state() == detail::HotPlan::kOutdated; }
  /// Marks the plan as outdated unless it is revoked. Call it after the operator's new state is
  /// published.
  void outdate();
  schema::Signature signature() const {
    return {slot->schema.get(), &arguments, &dims, static_cast<uint32_t>(context), tag,
            slot->ranks,        threads};
  }
  /// Repeats the decision for the example and updates the state. Revoked is final. An outdated plan
  /// stays outdated if the thread is in too many nested calls.
  void reconsider();
  /// Copies the example arguments.
  void keep(const schema::Arguments& given, const schema::BoundDims& bound);

 private:
  /// Repeats the decision by one state of the operator, which may be null.
  void reconsider_by(CompiledOperator* now);
  PlanState state_after(const Evaluation& decision) const;
  const registry::ImplementationRecord* chosen_by(const Evaluation& decision) const;
};

}  // namespace opmux::dispatch
