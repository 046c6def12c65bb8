#include "dispatch/call/slow_call.hpp"

#include <array>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/call/candidate_run.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/call/uncached_decision.hpp"
#include "dispatch/plan/cache_insert.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

/// One call on the slow path. `mark_` is constructed before run() loads the operator's state and
/// keeps the state alive until the call returns.
class SlowCall final : CandidateRun {
 public:
  SlowCall(OperatorSlot& slot, const CallSettings* settings, CallReport* report)
      : CandidateRun(slot,
                     (settings != nullptr ? *settings : CallSettings())
                         .with_threads_of(slot.engine->dependencies().threads),
                     report) {}

  Status run(const CallSite& site, const ArgValue* values, FailedAttempt* failed) {
    if (mark_.depth() == kMaxDepth) return too_deep(slot_);
    const uint64_t started = now();
    if (slot_.outdated.load(std::memory_order_acquire)) engine_.replace_outdated(slot_);
    state_ = slot_.current.load(std::memory_order_acquire);
    if (state_ == nullptr) return withdrawn(slot_);
    if (Status refused = refuse_opaque(state_->schema()); !refused.ok()) return refused;
    // Read the epoch before choosing: if the state is replaced meanwhile, the plan cached below is
    // stale and never runs.
    epoch_ = state_->epoch();
    if (Status status = check(state_->schema(), site, values, checked_); !status.ok())
      return status;
    if (checked_.empty) return {};
    if (Status status = check_data(state_->schema(), checked_.arguments); !status.ok())
      return status;
    const uint64_t context = mark_.block().context;
    signature_ = {&state_->schema(),    &checked_.arguments,
                  &checked_.dims,       static_cast<uint32_t>(context),
                  settings_.tag,        slot_.ranks,
                  settings_.max_threads};
    const DecisionCache::Answer answer = choose();
    op_ = state_->sources().op.get();
    if (report_ != nullptr) report_chosen(*answer.choice, answer.cached, started);
    if (answer.choice->plans.empty()) return answer.choice->nothing_left;
    declines_ = &state_->declines();
    site_ = &site;
    values_ = values;
    const bool kept = answer.uncached == nullptr;
    const bool sampled = failed == nullptr && report_ == nullptr &&
                         (signature_.ambient & schema::kCapturing) == 0 && slot_.sampling.take();
    return sampled ? run_sampled(*answer.choice) : run_choice(*answer.choice, kept, failed);
  }

 private:
  /// Also adds the call to the cells of the operator. Does not cache the plan, so that the next
  /// call takes the slow path again and can be sampled too.
  Status run_sampled(const Decision& choice) {
    const base::Clock& clock = *engine_.dependencies().clock;
    const uint64_t started = clock.now_ns();
    Status status = run_choice(choice, false, nullptr);
    const uint64_t took_ns = clock.now_ns() - started;
    if (status.ok()) base::if_memory([&] { slot_.sampling.add(signature_, took_ns); });
    return status;
  }

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

  Attempt start(const RankedCandidate& plan) override {
    const SlowPathGuard::Pin pinned = mark_.pin(plan.id);
    return try_as_planned(plan);
  }

  Attempt try_as_planned(const RankedCandidate& plan) {
    if (plan.candidate->implementation->kernel.workspace != nullptr) engine_.watch_workspaces();
    if (plan.transforms.any()) {
      const base::Clock* const clock = report_ == nullptr ? nullptr : engine_.dependencies().clock;
      return attempt_transformed(plan, signature_, settings_, clock);
    }
    StackFrame frame(state_->schema(), checked_.arguments, settings_);
    return attempt(plan, signature_, frame);
  }

  void keep(const RankedCandidate& plan, bool stands_in, const Attempt& tried) override {
    CacheInsert what{epoch_,
                     mark_.block().context,
                     site_,
                     values_,
                     &checked_.arguments,
                     &plan,
                     space_,
                     tried.prepared,
                     tried.pack.get(),
                     stands_in,
                     settings_};
    // A plan for arguments of other kinds than the schema has is looked up with converted ones.
    CallSite exact;
    ArgValue converted[schema::kMaxValues];
    if (!can_be_kept(state_->schema(), what, true) &&
        convert_given(state_->schema(), *site_, values_, exact, converted)) {
      what.site = &exact;
      what.values = converted;
    }
    install(mark_.block(), slot_, *state_, what, mark_.depth() != 0);
  }

  SlowPathGuard mark_;
  CompiledOperator* state_ = nullptr;
  DecisionCache* space_ = nullptr;
  uint64_t epoch_ = 0;
  CheckedArguments checked_;
  const CallSite* site_ = nullptr;
  const ArgValue* values_ = nullptr;
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
  std::array<ArgValue, schema::kMaxValues> values;
  plan.get_arguments(values.data());
  const CallSite site = plan.frame_site();
  FailedAttempt failed{plan.plan->candidate->implementation->number,
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
