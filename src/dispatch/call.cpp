#include "dispatch/call.hpp"

#include "dispatch/guarded_plan.hpp"
#include "dispatch/slow_call.hpp"
#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {
namespace {

/// Runs a plan whose guard holds; the mark is set. Whatever is not ok is handled with the mark
/// still in place, since it refers to the plan.
inline Status::Detail* run(ThreadBlock& block, GuardedPlan& plan, OperatorSlot& slot,
                           const CallSite& site, const ArgValue* values) {
  plan.set_arguments(values);
  const int32_t outcome = plan.run(plan.user_data, &plan.call);
  plan.count_call();
  if (outcome == OPMUX_OK) [[likely]] {
    block.clear(0);
    return nullptr;
  }
  Status::Detail* status = recover(slot, site, values, plan, outcome);
  block.clear(0);
  return status;
}

/// Other plans of this operator in this thread, and other shapes of the same plan.
[[gnu::noinline]] Status::Detail* call_again(ThreadBlock& block, OperatorSlot& slot,
                                             const CallSite& site, const ArgValue* values) {
  GuardedPlan* const first = block.recent[slot.number];
  GuardedPlan* plan = first;
  do {
    block.marks[0].store(plan->plan_id, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const WordPair differs =
        plan->context_differs(slot.epoch.load(std::memory_order_acquire), block.context, site);
    if ((differs[0] | differs[1]) == 0) {
      const bool exact =
          plan->same_tensors(values) && (!plan->value_guarded || plan->same_values(values));
      if (exact || plan->fits(values)) {
        if (!exact) plan->remember(values);
        block.recent[slot.number] = plan;
        return run(block, *plan, slot, site, values);
      }
    }
    plan = plan->next_of_line;
  } while (plan != first);
  block.clear(0);
  return call_slowly(slot, site, values, nullptr, nullptr);
}

}  // namespace

Status::Detail* call(OperatorSlot& slot, const CallSite& site, const ArgValue* values) noexcept {
  ThreadBlock& block = *thread_block;
  if (slot.number >= block.line_count) [[unlikely]] {
    return call_slowly(slot, site, values, nullptr, nullptr);
  }
  // A call inside a call: the frames of this thread's plans may be in use.
  if (block.marks[0].load(std::memory_order_relaxed) != 0) [[unlikely]] {
    return call_slowly(slot, site, values, nullptr, nullptr);
  }
  GuardedPlan& plan = *block.recent[slot.number];
  block.marks[0].store(plan.plan_id, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const WordPair differs =
      plan.context_differs(slot.epoch.load(std::memory_order_acquire), block.context, site);
  // Only now is it known which arguments are tensors.
  if ((differs[0] | differs[1]) == 0 && plan.same_tensors(values)) [[likely]] {
    if (!plan.value_guarded || plan.same_values(values)) [[likely]] {
      return run(block, plan, slot, site, values);
    }
  }
  return call_again(block, slot, site, values);
}

}  // namespace opmux::dispatch
