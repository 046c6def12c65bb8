#include "dispatch/call/call_decision.hpp"

#include "base/no_callback.hpp"
#include "base/text.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/call/uncached_decision.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {

void load_waiting_plugins(OperatorSlot& slot) {
  if (!slot.plugins_wait.load(std::memory_order_relaxed)) return;
  if (base::NoCallbackGuard::active() != nullptr) return;
  if ((own_thread_block().context & schema::kCapturing) != 0) return;
  slot.engine->plugins().load_for(slot);
}

void log_oddities(const OperatorSlot& slot, const Decision& choice) {
  if (!choice.selector_problem.empty()) {
    slot.engine->dependencies().log->tell(Level::warning, "selector.failed", slot.name(), "",
                                          choice.selector_problem,
                                          [&] { return choice.selector_problem; });
  }
  for (const ManySizes& many : choice.many_sizes) {
    const std::string dim = schema::describe(*slot.schema, many.dim);
    slot.engine->dependencies().log->tell(
        Level::warning, "dispatch.many_values", slot.name(), many.implementation->id, dim, [&] {
          return base::concat("its verifier has read more than ",
                              registry::RecordedReads::kFewSizes, " sizes of ", dim,
                              ", and each of them is decided separately; compare ", dim,
                              " in a capability (at_least, at_most, multiple_of) instead");
        });
  }
  if (choice.deviation.empty()) return;
  const std::string impl =
      choice.plans.empty() ? "" : choice.plans.front().candidate->implementation->id;
  slot.engine->dependencies().log->tell(
      Level::warning, "lock.deviation", slot.name(), impl, choice.deviation,
      [&] { return choice.deviation + (impl.empty() ? "" : "; " + impl + " runs instead"); });
}

Result<DecisionForPlan> choose_for_plan(OperatorSlot& slot, const CheckedArguments& checked,
                                        uint32_t tag, int32_t max_threads, bool capturing) {
  if (Status refused = refuse_reentry(slot); !refused.ok()) return refused;
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return too_deep(slot);
  const uint64_t context = mark.block().context | (capturing ? schema::kCapturing : 0);
  for (int states = 1;; ++states) {
    CompiledOperator* state = slot.current.load(std::memory_order_acquire);
    if (state == nullptr) return withdrawn(slot);
    const uint64_t epoch = state->epoch();
    const schema::Signature signature{
        &state->schema(), &checked.arguments, &checked.dims, static_cast<uint32_t>(context), tag,
        slot.ranks,       max_threads};
    DecisionCache& space = space_of(slot, *state, context);
    std::shared_ptr<const Decision> choice = space.decide_uncached(signature, {});
    const Keeping keeping = space.remember(signature, choice);
    if (keeping == Keeping::reads_more && states < kMostStates) {
      slot.engine->discard_decisions_of(slot);
      continue;
    }
    log_oddities(slot, *choice);
    return DecisionForPlan{std::move(choice), state->sources().op, context, epoch,
                           lockable(slot, keeping)};
  }
}

}  // namespace opmux::dispatch
