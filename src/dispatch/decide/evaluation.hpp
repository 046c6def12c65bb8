#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/call/transform.hpp"
#include "dispatch/decide/locked_choices.hpp"
#include "dispatch/decide/selector_step.hpp"
#include "dispatch/decide/verifier.hpp"
#include "health/health_view.hpp"
#include "policy/rules/operator_policy.hpp"
#include "registry/record.hpp"
#include "schema/dependencies.hpp"
#include "tune/row_index.hpp"

namespace opmux::dispatch {

/// The verdict on one candidate.
struct CandidateVerdict {
  const registry::ImplementationRecord* implementation = nullptr;
  registry::Reason reason = registry::Reason::none;  ///< none = accepted
  // At most one of these has the details of the reason. describe() turns it into text.
  const registry::CapabilityCheck* check = nullptr;
  policy::Origin by;
  std::string text;

  const registry::CompiledHint* hint = nullptr;  ///< the one that applies to the call, or null
  uint16_t tier = 0;
  double score = 0;
  bool tuned = false;   ///< preferred over a higher score because it was measured faster
  bool outrun = false;  ///< first by score, and not chosen because another one is faster
  /// The measurement of it that applies to the call, or null. Belongs to EvaluationInput::tuning.
  const tune::HeldRow* row = nullptr;
  Transforms transforms = {};  ///< needed for the candidate to be accepted

  bool accepted() const { return reason == registry::Reason::none; }
  /// The start of the score: the priority of the hint that applies, or of the implementation.
  int priority() const { return hint != nullptr ? hint->hint.priority : implementation->priority; }

  /// The hint that applies, for explain and selectors.
  std::optional<Hint> shown_hint() const {
    return hint == nullptr ? std::nullopt : std::optional<Hint>(hint->hint);
  }

  /// Resets the verdict for a candidate; keeps the capacity of `text`.
  void start(const registry::ImplementationRecord& candidate) {
    implementation = &candidate;
    reason = registry::Reason::none;
    check = nullptr;
    by = {};
    text.clear();
    hint = nullptr;
    tier = 0;
    score = 0;
    tuned = outrun = false;
    row = nullptr;
    transforms = {};
  }
};

/// The inputs of a decision: data and views only. A decision reads no file, clock or environment.
struct EvaluationInput {
  const registry::OperatorRecord* op = nullptr;
  const policy::OperatorPolicy* policy = nullptr;
  const health::HealthView* health = nullptr;
  std::shared_ptr<const tune::RowIndex> tuning = nullptr;  ///< null: no rows, or not by policy
  bool disabled = false;  ///< dispatch is bypassed: only the reference runs
  bool now = false;       ///< use the current health, which may read a clock; for explain
  const Selector* selector = nullptr;  ///< the program's selector; may be null
  const LockSet* lock = nullptr;       ///< the lock of a frozen runtime; null: not frozen
};

/// The outcome of a decision, with a reason for every candidate.
struct Evaluation {
  std::vector<CandidateVerdict> verdicts;  ///< indexed like the operator's implementations
  std::vector<uint16_t> order;             ///< indices of the accepted candidates, best first
  VerifierReads reads = {};                ///< the reads of verifiers
  std::optional<uint16_t> rests =
      {};  ///< the winner if no breaker were open, unless it is order[0]
  policy::PolicyView policy;
  bool picked = false;           ///< the selector picked the winner
  std::string selector_problem;  ///< why the selector failed; or empty
  LockVerdict lock = LockVerdict::free;
  const LockedClass* locked = nullptr;  ///< the lock's entry for this call; null: none
};

/// Makes a decision: refuses candidates, each with a reason, and orders the others. This is the
/// only place with the rules of selection; calls, bound plans and explain all use it.
void decide(const EvaluationInput& input, const schema::Signature& signature, Evaluation& decision);

/// All facts that decide() can read for this operator. Verifiers whose reads are recorded count
/// with the facts that they have read so far.
schema::Dependencies dependencies_of(const EvaluationInput& input);
/// The facts that decide() reads because of this implementation.
schema::Dependencies dependencies_of(const schema::Schema& schema,
                                     const registry::ImplementationRecord& implementation);

/// The text of a verdict: "H must be a multiple of 4100, is 4096"; empty if accepted.
std::string describe(const CandidateVerdict& verdict, const schema::Signature& signature);

/// The error if no candidate was accepted. Names the rules that require an implementation, and each
/// candidate with its reason.
Status nothing_left(const EvaluationInput& input, const Evaluation& decision,
                    const schema::Signature& signature);

using health::device_of;

/// An Evaluation whose memory the thread reuses. A nested decision, made by a verifier that calls
/// an operator, allocates a new one.
class SpareEvaluation {
 public:
  SpareEvaluation() : decision_(std::move(own_thread_block().spare_decision)) {
    if (decision_ == nullptr) decision_ = std::make_unique<Evaluation>();
  }
  ~SpareEvaluation() { own_thread_block().spare_decision = std::move(decision_); }
  SpareEvaluation(const SpareEvaluation&) = delete;
  SpareEvaluation& operator=(const SpareEvaluation&) = delete;

  Evaluation& operator*() const { return *decision_; }

 private:
  std::unique_ptr<Evaluation> decision_;
};

}  // namespace opmux::dispatch
