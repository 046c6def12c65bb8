#include "dispatch/plan/bound_plan_state.hpp"

#include <algorithm>

#include "base/memory.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

/// True if the reason forbids the implementation to run, so that bound plans are revoked. Other
/// reasons only mean that a new decision would choose another implementation.
bool forbids(Reason reason) {
  switch (reason) {
    case Reason::policy_denied:
    case Reason::policy_vendor_denied:
    case Reason::policy_vendor_not_allowed:
    case Reason::policy_not_allowed:
    case Reason::policy_outside_require:
    case Reason::policy_outside_order:
    case Reason::health_device_fatal:
    case Reason::health_quarantined:
    case Reason::backend_disabled:
    case Reason::backend_forked:
    case Reason::registry_withdrawn: return true;
    default: return false;
  }
}

}  // namespace

/// The first accepted candidate of a decision that a bound plan can use. Skips candidates that need
/// transforms or could not be prepared for the example.
const registry::ImplementationRecord* BoundPlanState::chosen_by(const Evaluation& decision) const {
  for (const uint16_t index : decision.order) {
    if (decision.verdicts[index].transforms.any()) continue;
    const registry::ImplementationRecord* candidate = decision.verdicts[index].implementation;
    if (std::ranges::find(passed_over, candidate, &registry::ImplementationPtr::get) ==
        passed_over.end())
      return candidate;
  }
  return nullptr;
}

PlanState BoundPlanState::state_after(const Evaluation& decision) const {
  const registry::ImplementationRecord& bound = *implementation;
  if (bound.withdrawn.load(std::memory_order_acquire)) return PlanState::revoked;
  for (const CandidateVerdict& verdict : decision.verdicts) {
    if (verdict.implementation != &bound) continue;
    if (forbids(verdict.reason)) return PlanState::revoked;
    return chosen_by(decision) == &bound ? PlanState::current : PlanState::stale;
  }
  return PlanState::revoked;
}

void BoundPlanState::keep(const schema::Arguments& given, const schema::BoundDims& bound) {
  arguments = given;
  dims = bound;
  for (uint32_t i = 0; i < given.count; ++i) {
    if (given.tags[i] != ArgTag::tensor) continue;
    if ((given.constants >> i & 1) != 0) {
      constants.push_back(PackedConstant::of(*given.values[i].tensor).shared_from_this());
      continue;
    }
    tensors[i] = *given.values[i].tensor;
    arguments.values[i].tensor = &tensors[i];
  }
}

PlanState BoundPlanState::state() {
  // A plan that cannot be evaluated for lack of memory counts as stale.
  if (outdated()) base::if_memory([&] { reconsider(); });
  switch (const uint32_t word = hot.load_state()) {
    case detail::HotPlan::kWatched: return unwatched.load(std::memory_order_relaxed);
    case detail::HotPlan::kOutdated: return PlanState::stale;
    default: return static_cast<PlanState>(word);
  }
}

namespace {

/// Stores a state unless the plan is revoked, which is final.
void store_state(detail::HotPlan& hot, uint32_t word) {
  const std::atomic_ref<uint32_t> state_word(hot.state);
  uint32_t seen = state_word.load(std::memory_order_relaxed);
  while (seen != detail::HotPlan::kRevoked &&
         !state_word.compare_exchange_weak(seen, word, std::memory_order_acq_rel)) {
  }
}

}  // namespace

void BoundPlanState::outdate() {
  guard_outdated.store(true, std::memory_order_release);
  store_state(hot, detail::HotPlan::kOutdated);
}

void BoundPlanState::reconsider() {
  if (revoked()) return;
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return;
  // If another thread publishes a state meanwhile, the result of the earlier one may overwrite its
  // outdate() or result, so that the new state must be evaluated as well.
  CompiledOperator* now = nullptr;
  do {
    now = slot->current.load(std::memory_order_acquire);
    reconsider_by(now);
  } while (slot->current.load(std::memory_order_acquire) != now);
}

void BoundPlanState::reconsider_by(CompiledOperator* now) {
  PlanState next = PlanState::revoked;
  uint32_t word = 0;
  if (now != nullptr) {
    const DecisionCache& space = space_of(*slot, *now, context);
    const schema::Signature signature{
        &now->schema(), &arguments, &dims, static_cast<uint32_t>(context), tag,
        slot->ranks,    threads};
    Evaluation decision;
    decide(space.input(), signature, decision);
    next = state_after(decision);
    const health::HealthView* health = slot->engine->dependencies().health;
    const bool watched = health != nullptr && health->watch(*implementation) != nullptr;
    const health::Breaker* const limit =
        health == nullptr ? nullptr : health->timer(*implementation);
    armed.store(watched, std::memory_order_relaxed);
    timer.store(limit, std::memory_order_relaxed);
    if (watched || limit != nullptr) {
      unwatched.store(next, std::memory_order_relaxed);
      if (next != PlanState::revoked) word = detail::HotPlan::kWatched;
    }
    const uint64_t serial = now->serial();
    if (considered.exchange(serial, std::memory_order_acq_rel) != serial) {
      guard_outdated.store(true, std::memory_order_release);
    }
  }
  store_state(hot, word != 0 ? word : static_cast<uint32_t>(next));
}

}  // namespace opmux::dispatch
