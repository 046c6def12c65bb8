#pragma once

#include <cstdint>
#include <string>

#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/attempt.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/decide/declines.hpp"
#include "dispatch/engine.hpp"

namespace opmux::dispatch {

/// An attempt that was made before the candidates are tried in order, and that was not ok. The
/// candidates continue after it.
struct FailedAttempt {
  uint32_t implementation_number;
  Attempt attempt;
};

/// Tries the candidates of a decision until one completes the call. Asks circuit breakers before
/// each attempt, counts its outcome, reports it to health, and chooses what follows by the class of
/// the outcome. A derived class runs one candidate.
class CandidateRun {
 public:
  CandidateRun(const CandidateRun&) = delete;
  CandidateRun& operator=(const CandidateRun&) = delete;

 protected:
  /// `report` may be null.
  CandidateRun(OperatorSlot& slot, const CallSettings& settings, CallReport* report)
      : slot_(slot), engine_(*slot.engine), settings_(settings), report_(report) {}
  ~CandidateRun() = default;

  /// Runs one candidate. Does not count the outcome.
  virtual Attempt start(const RankedCandidate& plan) = 0;
  /// Called after a candidate completed the call, if its plan may be cached.
  virtual void keep(const RankedCandidate&, bool /*stands_in*/, const Attempt&) {}

  /// Tries the candidates of `choice`, which is not empty. `kept`: the plan may be cached.
  /// `op_` and `signature_` must be set.
  Status run_choice(const Decision& choice, bool kept, FailedAttempt* failed);

  /// The time for the report; 0 if there is none.
  uint64_t now() const { return report_ == nullptr ? 0 : engine_.dependencies().clock->now_ns(); }
  void report_chosen(const Decision& choice, bool cached, uint64_t started) const;
  void log_decision(const Evaluation& decision, const schema::Signature& signature) const;

  OperatorSlot& slot_;
  Engine& engine_;
  const CallSettings settings_;
  CallReport* report_;
  const registry::OperatorRecord* op_ = nullptr;
  Declines* declines_ = nullptr;  ///< null: arguments that were declined are not remembered
  schema::Signature signature_;

 private:
  const schema::Arguments& arguments() const { return *signature_.arguments; }
  size_t skip_declined(const Decision& choice, size_t at, bool resumed) const;
  Attempt try_plan(const RankedCandidate& plan, bool stands_in);
  Status failure(const RankedCandidate& plan, const Attempt& tried) const;
  bool counts_as_declined(Code outcome) const;
  health::BreakerKey breaker_key() const { return health::BreakerKey::of(signature_); }
  std::string what_rests(const CandidateParts& candidate) const;
  Status not_admitted(const RankedCandidate& plan);
  void report_health(const RankedCandidate& plan, Code outcome, const health::Pass& pass);
  void note_outcome(const RankedCandidate& plan, const Attempt& tried, const Decision& choice,
                    const health::Pass& pass);
  void note_fallback(const RankedCandidate& plan, const Attempt& tried);
};

}  // namespace opmux::dispatch
