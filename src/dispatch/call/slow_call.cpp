#include "dispatch/call/slow_call.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/call/attempt.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/call/uncached_decision.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/cache_insert.hpp"
#include "dispatch/plan/call_timer.hpp"
#include "dispatch/plan/timed_run.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

/// A failed attempt of the fast path, from which the slow path continues.
struct Failed {
  uint32_t implementation_number;
  Attempt attempt;
};

/// One call on the slow path. `mark_` is constructed before run() loads the operator's state and
/// keeps the state alive until the call returns.
class SlowCall {
 public:
  SlowCall(OperatorSlot& slot, const CallSettings* settings, CallReport* report)
      : slot_(slot),
        engine_(*slot.engine),
        settings_((settings != nullptr ? *settings : CallSettings())
                      .with_threads_of(engine_.dependencies().threads)),
        report_(report) {}

  Status run(const CallSite& site, const ArgValue* values, Failed* failed) {
    if (mark_.depth() == kMaxDepth) return too_deep(slot_);
    const uint64_t started = now();
    if (slot_.outdated.load(std::memory_order_acquire)) engine_.replace_outdated(slot_);
    state_ = slot_.current.load(std::memory_order_acquire);
    if (state_ == nullptr) return withdrawn(slot_);
    // Read the epoch before choosing: if the state is replaced meanwhile, the plan cached below is
    // stale and never runs.
    epoch_ = state_->epoch();
    if (Status status = check(state_->schema(), site, values, checked_); !status.ok())
      return status;
    if (checked_.empty) return {};
    if (Status status = check_data(state_->schema(), checked_.arguments); !status.ok())
      return status;
    const uint64_t context = mark_.block().context;
    signature_ = {&state_->schema(), &checked_.arguments, &checked_.dims,
                  static_cast<uint32_t>(context), settings_.tag};
    const DecisionCache::Answer answer = choose();
    if (report_ != nullptr) report_chosen(answer, started);
    if (answer.choice->plans.empty()) return answer.choice->nothing_left;
    return run_choice(*answer.choice, answer.uncached == nullptr, site, values, failed);
  }

 private:
  uint64_t now() const { return report_ == nullptr ? 0 : engine_.dependencies().clock->now_ns(); }

  /// Returns the decision. If the state cannot cache it because a verifier read a new fact, or
  /// because its table is full, the state is replaced and the new one decides.
  DecisionCache::Answer choose() {
    DecisionCache::Answer answer = ask();
    int states = 1;
    for (; states < kMostStates && outgrown(slot_, *space_, answer.keeping); ++states) {
      engine_.try_replace(slot_, *state_, answer.keeping == Keeping::reads_more);
      CompiledOperator* const next = slot_.current.load(std::memory_order_acquire);
      // The arguments were checked against the schema of `state_`.
      if (next == nullptr || next == state_ || &next->schema() != &state_->schema()) break;
      state_ = next;
      epoch_ = next->epoch();
      answer = ask();
    }
    if (answer.keeping != Keeping::kept) note_uncached(slot_, answer, states);
    engine_.dependencies().maintenance->revive();
    return answer;
  }

  DecisionCache::Answer ask() {
    space_ = &space_of(slot_, *state_, mark_.block().context);
    DecisionCache::Answer answer = space_->choose(
        signature_, [this](const Evaluation& decision, const schema::Signature& signature) {
          log_decision(decision, signature);
        });
    if (answer.crowded) log_crowding();
    if (!answer.cached) log_oddities(slot_, *answer.choice);
    return answer;
  }

  void log_crowding() const {
    const DecisionCache::Crowding most = space_->crowding();
    const std::string impl = most.asked_by == nullptr ? "" : most.asked_by->id;
    engine_.dependencies().log->tell(
        Level::warning, "dispatch.many_classes", slot_.name(), impl, "", [&] {
          return base::concat(
              "calls fall into more than ", ClassTable::kMany, " decision classes, because ",
              impl.empty() ? "a rule or the tuning" : "it", " distinguishes ", most.values,
              " values of ", schema::describe(state_->schema(), most.fact),
              " so far; each class costs one decision");
        });
  }

  void log_decision(const Evaluation& decision, const schema::Signature& signature) const {
    base::EventLog& log = *engine_.dependencies().log;
    for (const CandidateVerdict& verdict : decision.verdicts) {
      if (verdict.accepted()) continue;
      log.tell(Level::debug, "dispatch.refused", slot_.name(), verdict.implementation->id,
               code_of(verdict.reason), [&] { return describe(verdict, signature); });
    }
    if (decision.order.empty()) return;
    const CandidateVerdict& chosen = decision.verdicts[decision.order[0]];
    log.tell(Level::info, "dispatch.chosen", slot_.name(), chosen.implementation->id, "", [&] {
      return "first of " + std::to_string(decision.order.size()) + " accepted, priority " +
             std::to_string(chosen.implementation->priority);
    });
  }

  void report_chosen(const DecisionCache::Answer& answer, uint64_t started) const {
    report_->cached = answer.cached;
    report_->generation = answer.choice->generation;
    report_->select_ns = now() - started;
    const Decision& choice = *answer.choice;
    report_->reason = !choice.deviation.empty() ? choice.deviation
                      : choice.rests != nullptr ? what_rests(*choice.rests)
                                                : choice.preference_unmet;
    report_->fell_back = !report_->reason.empty();
  }

  Status run_choice(const Decision& choice, bool kept, const CallSite& site, const ArgValue* values,
                    Failed* failed) {
    size_t at = 0;
    bool retried = false;
    if (failed != nullptr) {
      while (at < choice.plans.size() &&
             choice.plans[at].candidate->implementation->number != failed->implementation_number) {
        ++at;
      }
      if (at == choice.plans.size()) at = 0, failed = nullptr;
    }
    at = skip_declined(choice, at, failed != nullptr);
    bool only_declined = true;
    Status last;
    while (at < choice.plans.size()) {
      const RankedCandidate& plan = choice.plans[at];
      health::Pass pass;
      if (plan.candidate->watch != nullptr) {
        // An armed breaker is consulted on every call, so neither this plan nor a fallback after it
        // is cached.
        kept = false;
        if (failed == nullptr) pass = plan.candidate->watch->enter(breaker_key());
        if (!pass.admitted) {
          if (choice.only_first)
            return no_deviation(what_rests(*plan.candidate), LockVerdict::refused);
          last = not_admitted(plan);
          ++at;
          continue;
        }
      }
      const bool timed = plan.candidate->timer != nullptr && failed == nullptr &&
                         may_be_timed(*plan.candidate->implementation, signature_.ambient);
      std::optional<CallTimer> measured;
      if (timed) {
        measured.emplace(*plan.candidate->implementation->backend, *engine_.dependencies().clock,
                         health::device_of(checked_.arguments), settings_.stream);
      }
      const Attempt tried =
          failed != nullptr ? std::move(failed->attempt) : try_plan(plan, at != 0);
      if (timed && tried.outcome == Code::ok) pass.took_ns = measured->stop();
      measured.reset();
      failed = nullptr;
      if (tried.outcome == Code::ok) {
        if (plan.candidate->watch != nullptr || plan.candidate->too_slow(pass.took_ns))
          base::if_memory([&] { report_health(plan, Code::ok, pass); });
        // Do not cache a fallback after a failure, so that the next call tries the first choice.
        // Without memory for the plan, the next call takes the slow path again.
        if (kept && report_ == nullptr && only_declined) {
          base::if_memory([&] { keep_plan(plan, at != 0, tried, site, values); });
        }
        return {};
      }
      last = failure(plan, tried);
      only_declined &= counts_as_declined(tried.outcome);
      note_outcome(plan, tried, choice, pass);
      const Next next = after(tried.outcome, choice.strict, retried, *state_->sources().op,
                              *plan.candidate->implementation, checked_.arguments);
      if (next == Next::give_up) return last;
      retried = next == Next::retry;
      if (retried) {
        base::if_memory([&] { engine_.trim(); });
        continue;
      }
      ++at;
      note_fallback(plan, tried);
    }
    return last;
  }

  /// Returns the first candidate to try: skips those that declined exactly these arguments before.
  size_t skip_declined(const Decision& choice, size_t at, bool resumed) {
    if (resumed || !state_->declines().any()) return at;
    const uint64_t hash = exact_hash(checked_.arguments);
    size_t first = at;
    while (first + 1 < choice.plans.size() &&
           state_->declines().has(hash, choice.plans[first].candidate->implementation->number)) {
      ++first;
    }
    return first;
  }

  Attempt try_as_planned(const RankedCandidate& plan) {
    if (plan.candidate->implementation->kernel.workspace != nullptr) engine_.watch_workspaces();
    if (plan.transforms.any()) return attempt_transformed(plan, signature_, settings_);
    StackFrame frame(state_->schema(), checked_.arguments, settings_);
    return attempt(plan, signature_, frame);
  }

  Attempt try_plan(const RankedCandidate& plan, bool stands_in) {
    const uint64_t started = now();
    Attempt tried = [&] {
      const SlowPathGuard::Pin pinned = mark_.pin(plan.id);
      return try_as_planned(plan);
    }();
    if (report_ != nullptr) {
      report_->run_ns += now() - started;
      report_->implementation = plan.candidate->implementation->id;
      report_->transforms = describe(plan.transforms, state_->schema());
    }
    if (tried.left != 0) [[unlikely]] {
      const std::string text = note_left(slot_, *plan.candidate->implementation, tried.left);
      if (report_ != nullptr && !report_->fell_back) report_->reason = text;
    }
    if (tried.outcome == Code::ok) {
      count(*plan.candidate->counters, Code::ok);
      if (stands_in) plan.candidate->counters->stood_in.fetch_add(1, std::memory_order_relaxed);
    }
    return tried;
  }

  void keep_plan(const RankedCandidate& plan, bool stands_in, const Attempt& tried,
                 const CallSite& site, const ArgValue* values) {
    CacheInsert what{epoch_,
                     mark_.block().context,
                     &site,
                     values,
                     &checked_.arguments,
                     &plan,
                     space_,
                     tried.prepared,
                     tried.pack.get(),
                     stands_in,
                     settings_};
    // A plan for arguments of other kinds than the schema has is looked up with converted ones.
    CallSite exact;
    ArgValue converted[OPMUX_MAX_ARGS];
    if (!can_be_kept(state_->schema(), what, true) &&
        convert_given(state_->schema(), site, values, exact, converted)) {
      what.site = &exact;
      what.values = converted;
    }
    install(mark_.block(), slot_, *state_, what, mark_.depth() != 0);
  }

  Status failure(const RankedCandidate& plan, const Attempt& tried) const {
    std::string text =
        plan.candidate->implementation->id + " " + std::string(opmux::name_of(tried.outcome));
    if (!tried.text.empty()) text += ": " + tried.text;
    return {tried.outcome, "call." + std::string(opmux::name_of(tried.outcome)), std::move(text)};
  }

  bool counts_as_declined(Code outcome) const {
    return outcome == Code::declined ||
           (outcome == Code::invalid_argument && !state_->sources().op->data_checked);
  }

  health::BreakerKey breaker_key() const { return health::BreakerKey::of(signature_); }

  std::string what_rests(const CandidateParts& candidate) const {
    const registry::ImplementationRecord& implementation = *candidate.implementation;
    const std::string how = engine_.dependencies().health->remark(implementation, signature_);
    return implementation.id + (how.empty() ? " has an open circuit breaker" : " is " + how);
  }

  /// Handles a candidate whose breaker rejects the call: the breaker opened after the decision, or
  /// it is half open and has no probe permit left.
  Status not_admitted(const RankedCandidate& plan) {
    const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
    const std::string text = what_rests(*plan.candidate);
    plan.candidate->counters->refused.fetch_add(1, std::memory_order_relaxed);
    engine_.dependencies().log->tell(Level::warning, "call.fell_back", slot_.name(),
                                     implementation.id, "health.open", [&] { return text; });
    if (report_ != nullptr) {
      report_->fell_back = true;
      report_->reason = text;
    }
    return {Code::no_candidate, std::string(code_of(registry::Reason::health_open)), text};
  }

  void report_health(const RankedCandidate& plan, Code outcome, const health::Pass& pass) {
    const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
    if (engine_.dependencies().health->on_outcome(implementation, signature_, outcome, pass))
      engine_.health_changed(implementation);
  }

  void note_outcome(const RankedCandidate& plan, const Attempt& tried, const Decision& choice,
                    const health::Pass& pass) {
    count(*plan.candidate->counters, tried.outcome);
    // The call goes on without notes for which there is no memory.
    base::if_memory([&] {
      if (!counts_as_declined(tried.outcome) || choice.strict) return;
      state_->declines().remember(exact_hash(checked_.arguments), shape_hash(checked_.arguments),
                                  plan.candidate->implementation->number);
    });
    base::if_memory([&] {
      if (tried.outcome != Code::failed || engine_.dependencies().failures == nullptr) return;
      engine_.dependencies().failures->note(
          {*plan.candidate->implementation, signature_, settings_.max_threads, tried.text});
    });
    base::if_memory([&] { report_health(plan, tried.outcome, pass); });
  }

  void note_fallback(const RankedCandidate& plan, const Attempt& tried) {
    const Status why = failure(plan, tried);
    log_fallback(slot_, *plan.candidate->implementation, tried.outcome, why.message());
    if (report_ == nullptr) return;
    report_->fell_back = true;
    report_->reason = why.message();
  }

  OperatorSlot& slot_;
  Engine& engine_;
  const CallSettings settings_;
  CallReport* report_;
  SlowPathGuard mark_;
  CompiledOperator* state_ = nullptr;
  DecisionCache* space_ = nullptr;
  uint64_t epoch_ = 0;
  CheckedArguments checked_;
  schema::Signature signature_;
};

}  // namespace

Status::Detail* call_slowly(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                            const CallSettings* settings, CallReport* report) noexcept {
  if (report != nullptr) *report = {};
  Status status = base::or_out_of_memory([&]() -> Status {
    if (Status refused = refuse_reentry(slot); !refused.ok()) return refused;
    load_waiting_plugins(slot);
    SlowCall slow(slot, settings, report);
    return slow.run(site, values, nullptr);
  });
  if (report != nullptr) report->outcome = status.code();
  return status.release();
}

Status::Detail* recover(CachedPlan& plan, int32_t outcome) noexcept {
  Status::Detail* const status = recover_nested(plan, outcome);
  thread_block->clear(0);
  return status;
}

namespace {

Status continue_call(CachedPlan& plan, int32_t outcome) {
  std::array<ArgValue, OPMUX_MAX_ARGS> values;
  plan.get_arguments(values.data());
  const CallSite site = plan.frame_site();
  Failed failed{plan.plan->candidate->implementation->number,
                {outcome_of(outcome), {}, nullptr, nullptr}};
  // A declined plan must not run for these arguments again, so drop it; the next call takes the
  // slow path, which skips the candidates that declined.
  if (failed.attempt.outcome == Code::declined ||
      failed.attempt.outcome == Code::invalid_argument) {
    plan.epoch = 0;
  }
  const opmux_error& error = *plan.call.error;
  failed.attempt.text.assign(error.text, std::min(error.text_size, error.text_capacity));
  const CallSettings settings{static_cast<uint32_t>(plan.call.tag), plan.call.stream,
                              plan.call.max_threads, plan.call.parallel_for, plan.call.pool};
  SlowCall slow(*plan.slot, &settings, nullptr);
  return slow.run(site, values.data(), &failed);
}

}  // namespace

Status::Detail* recover_nested(CachedPlan& plan, int32_t outcome) noexcept {
  return base::or_out_of_memory([&] { return continue_call(plan, outcome); }).release();
}

}  // namespace opmux::dispatch
