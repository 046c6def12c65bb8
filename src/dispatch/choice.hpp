#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "dispatch/transform.hpp"
#include "health/breaker.hpp"
#include "registry/arguments.hpp"
#include "registry/facts.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

inline constexpr size_t kMaxGuardFacts = 48;

/// What happened to an implementation's calls. Plain calls are counted per thread and folded in.
struct ImplementationCounters {
  std::atomic<uint64_t> calls{0}, declined{0}, failed{0}, resource{0}, invalid_argument{0},
      device_lost{0}, stood_in{0},  ///< ran because an earlier candidate did not
      refused{0},                   ///< by decisions
      packed_bytes{0};              ///< of its copies of constants, now
};

/// The facts, beyond devices, ranks, element types and presence, that a plan holds for.
struct GuardFacts {
  std::vector<registry::Fact> shape;  ///< of dimensions and strides
  std::vector<registry::Fact> value;  ///< scalars and alignments: may change with equal shapes
  bool exact_only = false;            ///< everything counts (a prepared state that reads all)
  bool too_many = false;              ///< cannot be kept in a thread's line
};

class CallTap;
class PreparedCache;

/// What plans for one implementation share.
struct CandidateParts {
  registry::ImplementationPtr implementation;
  std::shared_ptr<ImplementationCounters> counters;
  std::shared_ptr<PreparedCache> prepared;  ///< null if it has no plan()
  GuardFacts guard;                         ///< what plans compare
  health::Breaker* watch = nullptr;         ///< calls ask it and tell it how they ended
  std::shared_ptr<CallTap> tap = nullptr;   ///< looks at some of its calls; null: nobody does
};
/// In the order of the operator's implementations.
using CandidateTable = std::vector<CandidateParts>;

/// One accepted candidate, ready to try.
struct PlanRecord {
  uint64_t id = 0;
  const CandidateParts* candidate = nullptr;  ///< one of the choice's
  Transforms transforms = {};                 ///< around its kernel
};

/// The answer of one decision: whom to call, and whom after that. Immutable.
struct Choice {
  std::shared_ptr<const CandidateTable> candidates;
  std::vector<PlanRecord> plans;  ///< best first; the later ones stand in if an outcome allows
  bool strict = false;
  uint64_t generation = 0;
  std::string preference_unmet;           ///< a preferred candidate was refused: which, and why
  const CandidateParts* rests = nullptr;  ///< who would be first, but failed too often
  std::string deviation;         ///< from the lock of a frozen runtime: why; empty if there is none
  bool beside_lock = false;      ///< the lock says nothing of such calls
  bool only_first = false;       ///< locked and strict: nobody runs in the place of the first
  std::string selector_problem;  ///< the program's selector failed: why
  Status nothing_left;           ///< if there are no plans: why
};

}  // namespace opmux::dispatch
