#include "dispatch/call/candidate_run.hpp"

#include <optional>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/decide/evaluation.hpp"
#include "dispatch/plan/call_timer.hpp"
#include "dispatch/plan/timed_run.hpp"

namespace opmux::dispatch {

void CandidateRun::report_chosen(const Decision& choice, bool cached, uint64_t started) const {
  report_->cached = cached;
  report_->generation = choice.generation;
  report_->select_ns = now() - started;
  report_->reason = !choice.deviation.empty() ? choice.deviation
                    : choice.rests != nullptr ? what_rests(*choice.rests)
                                              : choice.preference_unmet;
  report_->fell_back = !report_->reason.empty();
}

void CandidateRun::log_decision(const Evaluation& decision,
                                const schema::Signature& signature) const {
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
           std::to_string(chosen.priority());
  });
}

Status CandidateRun::run_choice(const Decision& choice, bool kept, FailedAttempt* failed) {
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
                       health::device_of(arguments()), settings_.stream);
    }
    const Attempt tried = failed != nullptr ? std::move(failed->attempt) : try_plan(plan, at != 0);
    if (timed && tried.outcome == Code::ok) pass.took_ns = measured->stop();
    measured.reset();
    failed = nullptr;
    if (tried.outcome == Code::ok) {
      if (plan.candidate->watch != nullptr || plan.candidate->too_slow(pass.took_ns))
        base::if_memory([&] { report_health(plan, Code::ok, pass); });
      // Do not cache a fallback after a failure, so that the next call tries the first choice.
      // Without memory for the plan, the next call takes the slow path again.
      if (kept && report_ == nullptr && only_declined) {
        base::if_memory([&] { keep(plan, at != 0, tried); });
      }
      return {};
    }
    last = failure(plan, tried);
    only_declined &= counts_as_declined(tried.outcome);
    note_outcome(plan, tried, choice, pass);
    const Next next = after(tried.outcome, choice.strict, retried, *op_,
                            *plan.candidate->implementation, arguments());
    if (next == Next::give_up || tried.stopped) return last;
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
size_t CandidateRun::skip_declined(const Decision& choice, size_t at, bool resumed) const {
  if (resumed || declines_ == nullptr || !declines_->any()) return at;
  const uint64_t hash = exact_hash(arguments());
  size_t first = at;
  while (first + 1 < choice.plans.size() &&
         declines_->has(hash, choice.plans[first].candidate->implementation->number)) {
    ++first;
  }
  return first;
}

Attempt CandidateRun::try_plan(const RankedCandidate& plan, bool stands_in) {
  const uint64_t started = now();
  Attempt tried = start(plan);
  if (report_ != nullptr) {
    report_->run_ns += now() - started - tried.transform_ns;
    report_->transform_ns += tried.transform_ns;
    report_->implementation = plan.candidate->implementation->id;
    report_->transforms = describe(plan.transforms, *op_->schema);
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

Status CandidateRun::failure(const RankedCandidate& plan, const Attempt& tried) const {
  std::string text =
      plan.candidate->implementation->id + " " + std::string(opmux::name_of(tried.outcome));
  if (!tried.text.empty()) text += ": " + tried.text;
  return {tried.outcome, "call." + std::string(opmux::name_of(tried.outcome)), std::move(text)};
}

bool CandidateRun::counts_as_declined(Code outcome) const {
  return outcome == Code::declined || (outcome == Code::invalid_argument && !op_->data_checked);
}

std::string CandidateRun::what_rests(const CandidateParts& candidate) const {
  const registry::ImplementationRecord& implementation = *candidate.implementation;
  const std::string how = engine_.dependencies().health->remark(implementation, signature_);
  return implementation.id + (how.empty() ? " has an open circuit breaker" : " is " + how);
}

/// Handles a candidate whose breaker rejects the call: the breaker opened after the decision, or
/// it is half open and has no probe permit left.
Status CandidateRun::not_admitted(const RankedCandidate& plan) {
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

void CandidateRun::report_health(const RankedCandidate& plan, Code outcome,
                                 const health::Pass& pass) {
  const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
  if (engine_.dependencies().health->on_outcome(implementation, signature_, outcome, pass))
    engine_.health_changed(implementation);
}

void CandidateRun::note_outcome(const RankedCandidate& plan, const Attempt& tried,
                                const Decision& choice, const health::Pass& pass) {
  if (!tried.stopped) count(*plan.candidate->counters, tried.outcome);
  // The call goes on without notes for which there is no memory.
  base::if_memory([&] {
    if (declines_ == nullptr || !counts_as_declined(tried.outcome) || choice.strict) return;
    declines_->remember(exact_hash(arguments()), shape_hash(arguments()),
                        plan.candidate->implementation->number);
  });
  base::if_memory([&] {
    if (tried.outcome != Code::failed || engine_.dependencies().failures == nullptr) return;
    if (op_->schema->opaque) return;  // its arguments are not known, so that nothing can repeat it
    engine_.dependencies().failures->note(
        {*plan.candidate->implementation, signature_, settings_.max_threads, tried.text});
  });
  base::if_memory([&] { report_health(plan, tried.outcome, pass); });
}

void CandidateRun::note_fallback(const RankedCandidate& plan, const Attempt& tried) {
  const Status why = failure(plan, tried);
  log_fallback(slot_, *plan.candidate->implementation, tried.outcome, why.message());
  if (report_ == nullptr) return;
  report_->fell_back = true;
  report_->reason = why.message();
}

}  // namespace opmux::dispatch
