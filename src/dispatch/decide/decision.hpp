#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <opmux/status.hpp>

#include "base/locks.hpp"
#include "dispatch/call/transform.hpp"
#include "health/breaker.hpp"
#include "registry/record.hpp"
#include "schema/arguments.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

inline constexpr size_t kMaxGuardFacts = 48;

/// Attributes that describe() reports about an instance: keys with values, in the order of the
/// report.
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Outcome counters of one implementation. `calls` lacks the calls that living threads and bound
/// plans have counted. A thread that ends and a bound plan that is destroyed add theirs under the
/// lock of ThreadList, so that Engine::stats(), which holds it too, finds each call in exactly one
/// place.
struct ImplementationCounters {
  std::atomic<uint64_t> calls{0}, declined{0}, failed{0}, resource{0}, invalid_argument{0},
      device_lost{0}, stood_in{0},  ///< successful runs as a fallback
      refused{0},                   ///< decisions that refused it, and calls its breaker rejected
      decided_each_time{0},         ///< calls that chose it first by a decision that is not cached
      packed_bytes{0};              ///< current size of its packed constants
  /// Sum over living threads and bound plans, calculated by each Engine::stats(). Guarded by the
  /// lock of ThreadList.
  uint64_t calls_elsewhere = 0;
  /// Attributes of the instance that was packed last; empty if there was none.
  base::ForkGuarded<Attributes> instance;
};

/// The facts that a plan's guard compares, in addition to devices, ranks, element types and
/// presence.
struct GuardFacts {
  std::vector<schema::Fact> shape;  ///< facts of dimensions and strides
  std::vector<schema::Fact> value;  ///< scalars and alignments: may differ with equal shapes
  bool exact_only = false;          ///< the prepared state may depend on any fact
  bool too_many = false;            ///< more than kMaxGuardFacts: the plan cannot be cached

  size_t count() const { return shape.size() + value.size(); }
};

class CallTap;
class PreparedCache;

/// The data that all plans of one implementation share.
struct CandidateParts {
  registry::ImplementationPtr implementation;
  std::shared_ptr<ImplementationCounters> counters;
  std::shared_ptr<PreparedCache> prepared;  ///< null if the implementation has no plan()
  GuardFacts guard;                         ///< facts that plans compare
  health::Breaker* watch = nullptr;         ///< armed breaker that admits calls; null: not armed
  const health::Breaker* timer = nullptr;   ///< limits the duration of calls; null: not timed
  std::shared_ptr<CallTap> tap = nullptr;   ///< samples some calls; null: none

  bool too_slow(uint64_t took_ns) const {
    return timer != nullptr && took_ns > timer->slow_call_ns();
  }
};
/// Indexed like the operator's implementations.
using CandidateTable = std::vector<CandidateParts>;

/// One accepted candidate of a choice.
struct RankedCandidate {
  uint64_t id = 0;
  const CandidateParts* candidate = nullptr;  ///< entry of Decision::candidates
  Transforms transforms = {};                 ///< applied around the kernel
};

/// A dimension of which a verifier with recorded reads has read many sizes.
struct ManySizes {
  const registry::ImplementationRecord* implementation;
  schema::Fact dim;
};

/// The cached result of a decision: the winner and its fallbacks. Immutable.
struct Decision {
  std::shared_ptr<const CandidateTable> candidates;
  std::vector<RankedCandidate> plans;  ///< best first; later ones are fallbacks
  bool strict = false;                 ///< no fallback
  uint64_t generation = 0;
  std::string preference_unmet;           ///< the preferred candidate that was refused, and why
  const CandidateParts* rests = nullptr;  ///< winner if no breaker were open; null if plans[0] is
  std::string deviation;         ///< why this deviates from the lock of a frozen runtime; or empty
  bool beside_lock = false;      ///< the lock has no entry for this class
  bool only_first = false;       ///< locked and strict: no fallback if the breaker rejects plans[0]
  std::string selector_problem;  ///< why the program's selector failed; or empty
  Status nothing_left;           ///< the error if `plans` is empty
  /// The implementation whose verifier read a fact that the class key lacks, so that the decision
  /// is valid for this call only; null: valid for its class.
  const registry::ImplementationRecord* reads_more = nullptr;
  /// The implementation whose verifier read something besides facts, and what it read; null: none.
  const registry::ImplementationRecord* outside_of = nullptr;
  std::string outside;
  std::vector<ManySizes> many_sizes;  ///< exceeded RecordedReads::kFewSizes in this decision
};

}  // namespace opmux::dispatch
