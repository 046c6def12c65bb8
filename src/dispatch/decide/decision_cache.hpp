#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/decide/class_table.hpp"
#include "dispatch/decide/evaluation.hpp"
#include "dispatch/plan/plan_ids.hpp"
#include "dispatch/plan/prepared_cache.hpp"

namespace opmux::dispatch {

/// Counters and prepared states of an implementation; shared by all epochs of its operator.
struct ImplementationState {
  std::shared_ptr<ImplementationCounters> counters = std::make_shared<ImplementationCounters>();
  std::shared_ptr<PreparedCache> prepared;  ///< null if the implementation has no plan()
};
using ImplementationStates = std::vector<std::shared_ptr<ImplementationState>>;

/// The inputs from which one CompiledOperator is compiled. The raw pointers must outlive it.
struct CompileInputs {
  std::shared_ptr<const registry::OperatorRecord> op;
  std::shared_ptr<const policy::PolicySet> policies;  ///< the operator's part of the policies
  uint64_t policy_hash = 0;
  ImplementationStates states;
  uint64_t generation = 0;
  const health::HealthView* health = nullptr;
  const tune::TuningView* tuning = nullptr;
  bool disabled = false;
  std::shared_ptr<const LockSet> lock = nullptr;       ///< null: not frozen
  std::shared_ptr<const Selector> selector = nullptr;  ///< null: no selector
  const TapView* taps = nullptr;                       ///< may be null
  uint64_t taps_version = 0;
};

/// Whether a decision is cached for its class, or why not.
enum class Keeping : uint8_t {
  kept,
  no_key,      ///< class keys cannot hold an element type with several lanes
  reads_more,  ///< a verifier read a fact that the keys lack; a new state has it
  outside,     ///< a verifier read something that is not a fact
  full,        ///< the table has no room
  overfull,    ///< the table has had no room for so many decisions that it should be discarded
};

/// The decisions for one operator under one scope during one epoch. Thread-safe and lock-free: the
/// inputs are immutable, and decisions are cached in a ClassTable.
class DecisionCache {
 public:
  /// `ids` must outlive the space.
  DecisionCache(const CompileInputs& sources, std::shared_ptr<const policy::OperatorPolicy> policy,
                PlanIds& ids);

  /// Called if a decision has a reason or a winner that no decision in this space had before; for
  /// the log.
  using OnDecision = std::function<void(const Evaluation&, const schema::Signature&)>;

  struct Answer {
    const Decision* choice = nullptr;
    std::shared_ptr<const Decision> uncached;  ///< owns `choice` if it could not be cached
    bool cached = false;                       ///< the class was already decided
    Keeping keeping = Keeping::kept;
    bool crowded = false;  ///< this class is the first beyond ClassTable::kMany; set once
  };
  /// Returns the choice for a call; makes and caches the decision if its class is new.
  Answer choose(const schema::Signature& signature, const OnDecision& on_decision);

  /// Makes a decision without reading or changing the cache.
  std::shared_ptr<const Decision> decide_uncached(const schema::Signature& signature,
                                                  const OnDecision& on_decision) const;

  /// Caches a choice for the class of a call, unless the class is already decided.
  Keeping remember(const schema::Signature& signature, std::shared_ptr<const Decision> choice);

  /// Calls visit(facts, choice) for each class that was decided.
  template <class Visit>
  void for_each_class(Visit&& visit) const {
    table_.for_each(
        [&](const ClassKey& key, const Decision& choice) { visit(layout_.facts_of(key), choice); });
  }

  /// The cached choice for a class, or null.
  const Decision* known(const ClassKey& key) const { return table_.find(key); }
  const ClassLayout& layout() const { return layout_; }

  const EvaluationInput& input() const { return input_; }
  const schema::Dependencies& dependencies() const { return dependencies_; }
  /// Whether a decision may depend on the tag of a call.
  bool reads_tag() const { return reads_tag_; }
  const std::shared_ptr<const CandidateTable>& candidates() const { return candidates_; }
  uint32_t classes() const { return table_.size(); }

  /// A full table is discarded after this many decisions that it could not keep. Filling a new
  /// table costs as many decisions, so that discarding at most doubles their number, also if calls
  /// of slightly more classes than fit alternate.
  static constexpr uint32_t kMostUnkept = ClassTable::kCapacity;

  /// The fact that splits calls into the most classes, and the implementation that reads it.
  struct Crowding {
    schema::Fact fact;
    size_t values = 0;
    const registry::ImplementationRecord* asked_by = nullptr;  ///< null: only rules or tuning
  };
  Crowding crowding() const;

 private:
  GuardFacts guard_for(const registry::ImplementationRecord& implementation) const;
  std::vector<RankedCandidate> plans_for(const Evaluation& decision) const;
  void count_refusals(const Evaluation& decision) const;
  void note_reads(const Evaluation& decision, const schema::Signature& signature,
                  Decision& choice) const;
  bool mark_logged(const Evaluation& decision) const;

  std::shared_ptr<const registry::OperatorRecord> op_;
  std::shared_ptr<const policy::OperatorPolicy> policy_;
  std::shared_ptr<const LockSet> lock_;
  std::shared_ptr<const Selector> selector_;
  EvaluationInput input_;
  schema::Dependencies dependencies_;
  ClassLayout layout_;
  bool reads_tag_;
  ClassTable table_;
  std::shared_ptr<const CandidateTable> candidates_;
  uint64_t generation_;
  PlanIds& ids_;
  /// Per candidate: bit mask of logged reasons.
  mutable std::vector<std::atomic<uint64_t>> logged_;
  std::atomic<bool> crowded_{false};
  std::atomic<uint32_t> unkept_{0};  ///< decisions for which the table had no room
};

}  // namespace opmux::dispatch
