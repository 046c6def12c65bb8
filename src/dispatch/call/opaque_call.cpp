#include <opmux/detail/opaque_call.hpp>

#include <algorithm>

#include "base/memory.hpp"
#include "dispatch/call/call_check.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/call/candidate_run.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/call/uncached_decision.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {

/// A decision with what it refers to. The caller owns it, because it outlives the mark under which
/// it was made: functions of a binding may call the operator again, to any depth.
struct OpaqueChoice {
  std::shared_ptr<const Decision> decision;
  std::shared_ptr<const registry::OperatorRecord> op;
  uint64_t context = 0;
  uint32_t tag = 0;
  uint64_t decided_ns = 0;  ///< duration of the decision
};

namespace {

/// Kinds of facts that a binding can compare.
bool comparable(schema::FactKind kind) {
  using enum schema::FactKind;
  return kind == dtype || kind == rank || kind == present || kind == contiguous || kind == device;
}

/// Adds the facts that a binding must compare; false if it cannot compare one of them.
bool add_facts(const schema::Dependencies& dependencies, OpaqueDecision& decision) {
  for (const schema::Fact& fact : dependencies.facts()) {
    if (schema::is_rank(fact)) continue;  // a change of it makes a new state
    if (fact.kind == schema::FactKind::ambient) {
      decision.ambient_read |= uint32_t{1} << fact.index;
      continue;
    }
    if (!comparable(fact.kind)) return false;
    decision.facts.push_back({static_cast<uint32_t>(fact.kind), fact.index});
  }
  return true;
}

/// One call of an opaque operator.
class OpaqueCall final : CandidateRun {
 public:
  OpaqueCall(OperatorSlot& slot, CallReport* report) : CandidateRun(slot, {}, report) {}

  Result<OpaqueDecision> decide(const CallSite& site, const ArgValue* values, uint32_t tag) {
    const uint64_t started = engine_.dependencies().clock->now_ns();
    if (Status status = check(*slot_.schema, site, values, checked_); !status.ok()) return status;
    const SlowPathGuard mark;
    if (mark.depth() == kMaxDepth) return too_deep(slot_);
    if (slot_.outdated.load(std::memory_order_acquire)) engine_.replace_outdated(slot_);
    auto choice = std::make_shared<OpaqueChoice>();
    choice->context = mark.block().context;
    choice->tag = tag;
    signature_ = signature(*choice);
    OpaqueDecision made;
    for (int states = 1;; ++states) {
      CompiledOperator* const state = slot_.current.load(std::memory_order_acquire);
      if (state == nullptr) return withdrawn(slot_);
      made.decided_in = state->epoch();
      choice->op = state->sources().op;
      DecisionCache& space = space_of(slot_, *state, choice->context);
      // Verifiers of a binding may read more than the engine's facts, so that a decision about the
      // same class may differ. The class keeps the first one, for lockfiles and status files.
      choice->decision = space.decide_uncached(
          signature_, [this](const Evaluation& decision, const schema::Signature& signature) {
            log_decision(decision, signature);
          });
      const Keeping keeping = space.remember(signature_, choice->decision);
      if (keeping != Keeping::reads_more || states == kMostStates) {
        log_oddities(slot_, *choice->decision);
        const bool depends_on_facts = keeping != Keeping::reads_more && keeping != Keeping::outside;
        made.cacheable = add_facts(space.dependencies(), made) && depends_on_facts;
        if (keeping != Keeping::kept)
          note_uncached(slot_, {choice->decision.get(), choice->decision, false, keeping}, states);
        break;
      }
      engine_.try_replace(slot_, *state, true);
    }
    engine_.dependencies().maintenance->revive();
    choice->decided_ns = engine_.dependencies().clock->now_ns() - started;
    describe_first(*choice->decision, made);
    made.choice = std::move(choice);
    return made;
  }

  Status run(const OpaqueChoice& choice, const CallSite& site, const ArgValue* values,
             OpaqueRunner& runner, const OpaqueOutcome* failed) {
    if (Status status = check(*slot_.schema, site, values, checked_); !status.ok()) return status;
    signature_ = signature(choice);
    op_ = choice.op.get();
    runner_ = &runner;
    if (report_ != nullptr) {
      report_chosen(*choice.decision, false, now());
      report_->select_ns = choice.decided_ns;
    }
    if (choice.decision->plans.empty()) return choice.decision->nothing_left;
    if (failed == nullptr) return run_choice(*choice.decision, false, nullptr);
    const auto& first = *choice.decision->plans.front().candidate->implementation;
    FailedAttempt before{first.number, outcome_of(*failed)};
    return run_choice(*choice.decision, false, &before);
  }

 private:
  schema::Signature signature(const OpaqueChoice& choice) const {
    return {slot_.schema.get(), &checked_.arguments,
            &checked_.dims,     static_cast<uint32_t>(choice.context),
            choice.tag,         slot_.ranks};
  }

  void describe_first(const Decision& decision, OpaqueDecision& made) const {
    made.epoch = &slot_.epoch;
    if (decision.plans.empty()) return;
    const CandidateParts& first = *decision.plans.front().candidate;
    made.first = first.implementation->id;
    made.calls = &first.counters->calls;
    made.direct = first.watch == nullptr && first.timer == nullptr && first.tap == nullptr;
  }

  static Attempt outcome_of(const OpaqueOutcome& outcome) {
    Attempt tried;
    tried.outcome = outcome.code;
    tried.text = outcome.text;
    tried.stopped = outcome.stopped;
    return tried;
  }

  /// The thread shows no mark while the function runs. The function belongs to the binding, and
  /// the choice owns the rest.
  Attempt start(const RankedCandidate& plan) override {
    const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
    implementation.backend->mark_used();
    Attempt tried;
    {
      const RunningCallGuard inside(implementation);
      tried = outcome_of(runner_->run(implementation.id));
    }
    CallTap* const tap = plan.candidate->tap.get();
    if (tried.outcome == Code::ok && tap != nullptr)
      base::if_memory([&] { tap->pass_opaque(signature_, *runner_); });
    return tried;
  }

  CheckedArguments checked_;
  OpaqueRunner* runner_ = nullptr;
};

}  // namespace

const std::atomic<uint64_t>& epoch_of(const OperatorSlot& slot) noexcept { return slot.epoch; }

uint64_t context_of_thread() noexcept { return thread_block->context; }

Result<OpaqueDecision> decide_opaque(OperatorSlot& slot, const CallSite& site,
                                     const ArgValue* values, uint32_t tag) {
  return base::or_out_of_memory([&]() -> Result<OpaqueDecision> {
    if (Status refused = refuse_reentry(slot); !refused.ok()) return refused;
    load_waiting_plugins(slot);
    return OpaqueCall(slot, nullptr).decide(site, values, tag);
  });
}

Status run_opaque(OperatorSlot& slot, const OpaqueDecision& decision, const CallSite& site,
                  const ArgValue* values, OpaqueRunner& runner, const OpaqueOutcome* failed,
                  CallReport* report) {
  if (report != nullptr) *report = {};
  Status status = base::or_out_of_memory([&]() -> Status {
    return OpaqueCall(slot, report).run(*decision.choice, site, values, runner, failed);
  });
  if (report != nullptr) report->outcome = status.code();
  return status;
}

}  // namespace opmux::dispatch
