#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/locked_choices.hpp"
#include "dispatch/selector_step.hpp"
#include "dispatch/transform.hpp"
#include "health/health_view.hpp"
#include "policy/operator_policy.hpp"
#include "registry/dependencies.hpp"
#include "registry/record.hpp"
#include "tune/tuning_view.hpp"

namespace opmux::dispatch {

/// What a decision found out about one candidate.
struct Verdict {
  const registry::ImplementationRecord* implementation = nullptr;
  registry::Reason reason = registry::Reason::none;  ///< none = accepted
  // At most one of these says more; text is made only when somebody asks.
  const registry::CapabilityCheck* check = nullptr;
  policy::Origin by;
  std::string text;

  uint16_t tier = 0;
  double score = 0;
  bool tuned = false;          ///< chosen by a measured time over a higher score
  Transforms transforms = {};  ///< without which it would be refused

  bool accepted() const { return reason == registry::Reason::none; }

  /// Nothing is found out yet about this one; the text's memory is kept.
  void start(const registry::ImplementationRecord& candidate) {
    implementation = &candidate;
    reason = registry::Reason::none;
    check = nullptr;
    by = {};
    text.clear();
    tier = 0;
    score = 0;
    tuned = false;
    transforms = {};
  }
};

/// Everything that a decision reads. Pure data and views: no file, no clock, no environment.
struct DecisionInput {
  const registry::OperatorRecord* op = nullptr;
  const policy::OperatorPolicy* policy = nullptr;
  const health::HealthView* health = nullptr;
  const tune::TuningView* tuning = nullptr;  ///< may be null
  bool disabled = false;                     ///< dispatch is bypassed: the reference, nothing else
  bool now = false;  ///< health of this moment, which may read a clock: for explain
  const Selector* selector = nullptr;  ///< the program's own; may be null
  const LockSet* lock = nullptr;       ///< of a frozen runtime
};

/// The outcome of a decision, with a reason for every candidate.
struct Decision {
  std::vector<Verdict> verdicts;       ///< in the order of the operator's implementations
  std::vector<uint16_t> order;         ///< the accepted ones, best first
  std::optional<uint16_t> rests = {};  ///< who would be first, but for its breaker
  policy::PolicyView policy;
  bool picked = false;           ///< the selector picked the first
  std::string selector_problem;  ///< it failed: why
  LockVerdict lock = LockVerdict::free;
  const LockedClass* locked = nullptr;  ///< what the lock says of such calls; null: nothing
};

/// Chooses: drops candidates, each with its reason, and orders the rest. The one place where the
/// rules of choosing stand; calls, plans and explain all come here.
void decide(const DecisionInput& input, const registry::Signature& signature, Decision& decision);

/// Everything that decide() can look at for this operator.
registry::Dependencies dependencies_of(const DecisionInput& input);
/// What it looks at for this implementation's sake alone.
registry::Dependencies dependencies_of(const registry::Schema& schema,
                                       const registry::ImplementationRecord& implementation);

/// The sentence for a verdict: "H must be a multiple of 4100, is 4096", "" if accepted.
std::string describe(const Verdict& verdict, const registry::Signature& signature);

/// Why nothing is left: names what was required, and each candidate with its reason.
Status nothing_left(const DecisionInput& input, const Decision& decision,
                    const registry::Signature& signature);

using health::device_of;

}  // namespace opmux::dispatch
