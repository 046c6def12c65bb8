#include "dispatch/decide/decision_cache.hpp"

#include <algorithm>
#include <set>

#include "base/memory.hpp"
#include "dispatch/decide/evaluation.hpp"

namespace opmux::dispatch {
namespace {

using schema::Fact;
using schema::FactKind;

/// True for facts that every plan compares anyway, as whole words or as part of the context, so
/// that they need no guard. (`is_default` concerns strings and lists, whose plans are not cached.)
bool always_compared(FactKind kind) {
  switch (kind) {
    case FactKind::dtype:
    case FactKind::rank:
    case FactKind::device:
    case FactKind::present:
    case FactKind::ambient:
    case FactKind::tag:
    case FactKind::threads:
    case FactKind::is_default: return true;
    default: return false;
  }
}

/// True for scalars that the schema restricts to a range or that a `where` clause reads. A changed
/// value must be checked again.
bool checked_scalar(const schema::Schema& schema, size_t arg) {
  const schema::ArgType type = schema.args[arg].type;
  if (type == schema::ArgType::enumeration || type == schema::ArgType::boolean) return true;
  for (const schema::WhereExpression& condition : schema.where) {
    for (const auto& step : condition.steps) {
      if (step.op == schema::WhereExpression::Op::scalar &&
          static_cast<size_t>(step.index) == arg) {
        return true;
      }
    }
  }
  return false;
}

void add_unique(std::vector<Fact>& facts, Fact fact) {
  if (std::find(facts.begin(), facts.end(), fact) == facts.end()) facts.push_back(fact);
}

/// Number of times that these dependencies read the fact of this key part.
size_t times_asked(const schema::Dependencies& own, const ClassLayout::Part& part) {
  return static_cast<size_t>(
      part.exact ? std::ranges::count(own.exact(), part.fact)
                 : std::ranges::count(own.questions(), part.fact, &schema::Predicate::fact));
}

/// Describes the first refused candidate that the policy's list prefers over the winner.
std::string unmet_preference(const Evaluation& decision, const schema::Signature& signature) {
  if (!decision.policy.has_list || decision.order.empty()) return {};
  const uint16_t chosen_tier = decision.verdicts[decision.order[0]].tier;
  for (const CandidateVerdict& verdict : decision.verdicts) {
    if (verdict.accepted() || verdict.tier >= chosen_tier) continue;
    return verdict.implementation->id +
           " is preferred but refused: " + std::string(code_of(verdict.reason)) + " " +
           describe(verdict, signature);
  }
  return {};
}

/// The measured rows, unless the policy or the environment says that they do not count.
std::shared_ptr<const tune::RowIndex> rows_for(const CompileInputs& sources,
                                               const policy::OperatorPolicy& policy) {
  if (sources.tuning == nullptr || sources.disabled || policy.tuning() == Tuning::off)
    return nullptr;
  return sources.tuning->rows_of(*sources.op);
}

}  // namespace

DecisionCache::DecisionCache(const CompileInputs& sources,
                             std::shared_ptr<const policy::OperatorPolicy> policy, PlanIds& ids)
    : op_(sources.op),
      policy_(std::move(policy)),
      lock_(sources.lock),
      selector_(sources.selector),
      input_{op_.get(),        policy_.get(), sources.health,  rows_for(sources, *policy_),
             sources.disabled, false,         selector_.get(), lock_.get()},
      dependencies_(dependencies_of(input_)),
      layout_(dependencies_),
      reads_tag_(std::ranges::any_of(dependencies_.facts(),
                                     [](Fact fact) { return fact.kind == FactKind::tag; })),
      generation_(sources.generation),
      ids_(ids),
      logged_(op_->implementations.size()) {
  auto candidates = std::make_shared<CandidateTable>();
  for (size_t i = 0; i < op_->implementations.size(); ++i) {
    const registry::ImplementationPtr& implementation = op_->implementations[i];
    const ImplementationState& state = *sources.states[i];
    candidates->push_back(
        {implementation, state.counters, state.prepared, guard_for(*implementation),
         sources.health == nullptr ? nullptr : sources.health->watch(*implementation),
         sources.health == nullptr ? nullptr : sources.health->timer(*implementation),
         sources.taps == nullptr ? nullptr : sources.taps->tap_of(*op_, implementation)});
  }
  candidates_ = std::move(candidates);
}

DecisionCache::Crowding DecisionCache::crowding() const {
  std::vector<ClassLayout::Part> parts;
  std::vector<std::set<uint64_t>> words;
  table_.for_each([&](const ClassKey& key, const Decision&) {
    parts = layout_.parts_of(key);
    words.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) words[i].insert(parts[i].word);
  });
  const auto widest = std::ranges::max_element(words, {}, &std::set<uint64_t>::size);
  if (widest == words.end()) return {};
  const ClassLayout::Part& part = parts[static_cast<size_t>(widest - words.begin())];
  Crowding most{part.fact, widest->size(), nullptr};
  size_t most_asked = 0;
  for (const auto& implementation : op_->implementations) {
    const size_t asked = times_asked(dependencies_of(*op_->schema, *implementation), part);
    if (asked <= most_asked) continue;
    most_asked = asked;
    most.asked_by = implementation.get();
  }
  return most;
}

/// Marks the reasons and the winner of a decision as logged; true if one of them was not before.
bool DecisionCache::mark_logged(const Evaluation& decision) const {
  bool first = false;
  const auto note = [&](size_t candidate, registry::Reason reason) {
    const uint64_t bit = uint64_t{1} << static_cast<unsigned>(reason);
    std::atomic<uint64_t>& logged = logged_[candidate];
    if ((logged.load(std::memory_order_relaxed) & bit) != 0) return;
    first |= (logged.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  };
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    if (!decision.verdicts[i].accepted()) note(i, decision.verdicts[i].reason);
  }
  if (!decision.order.empty()) note(decision.order[0], registry::Reason::none);
  return first;
}

GuardFacts DecisionCache::guard_for(const registry::ImplementationRecord& implementation) const {
  GuardFacts guard;
  const auto add = [&](Fact fact) {
    if (always_compared(fact.kind)) return;
    const bool value = fact.kind == FactKind::scalar || fact.kind == FactKind::alignment;
    add_unique(value ? guard.value : guard.shape, fact);
  };
  for (const Fact& fact : dependencies_.facts()) add(fact);
  for (size_t i = 0; i < op_->schema->args.size(); ++i) {
    if (checked_scalar(*op_->schema, i)) add({FactKind::scalar, static_cast<uint8_t>(i)});
  }
  if (implementation.kernel.plan != nullptr) {
    guard.exact_only = !implementation.plan_reads;
    if (implementation.plan_reads) {
      for (const Fact& fact : *implementation.plan_reads) add(fact);
    } else {
      for (size_t i = 0; i < op_->schema->args.size(); ++i) {
        const auto index = static_cast<uint8_t>(i);
        const bool tensor = op_->schema->args[i].is_tensor();
        add({tensor ? FactKind::alignment : FactKind::scalar, index});
      }
    }
  }
  guard.too_many = guard.count() > kMaxGuardFacts;
  return guard;
}

std::vector<RankedCandidate> DecisionCache::plans_for(const Evaluation& decision) const {
  const std::vector<uint16_t>& order = decision.order;
  std::vector<RankedCandidate> plans;
  plans.reserve(order.size());
  const uint64_t first = ids_.take(order.size());
  for (const uint16_t index : order) {
    const CandidateParts& candidate = (*candidates_)[index];
    plans.push_back({ids_.id(first + plans.size(), candidate.implementation->number), &candidate,
                     decision.verdicts[index].transforms});
  }
  return plans;
}

void DecisionCache::count_refusals(const Evaluation& decision) const {
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    if (decision.verdicts[i].accepted()) continue;
    (*candidates_)[i].counters->refused.fetch_add(1, std::memory_order_relaxed);
  }
}

void DecisionCache::note_reads(const Evaluation& decision, const schema::Signature& signature,
                               Decision& choice) const {
  if (!decision.reads.outside.empty()) {
    choice.outside_of = decision.reads.outside.front().implementation;
    for (const OutsideRead& read : decision.reads.outside) {
      if (read.implementation != choice.outside_of) continue;
      choice.outside += (choice.outside.empty() ? "" : ", ") + read.what;
    }
  }
  for (const RecordedRead& read : decision.reads.facts) {
    if (std::ranges::binary_search(dependencies_.exact(), read.fact)) continue;
    choice.reads_more = read.implementation;
    return;
  }
  for (const RecordedRead& read : decision.reads.facts) {
    if (read.fact.kind != FactKind::dim) continue;
    const int64_t size = value_of(signature, read.fact);
    if (read.implementation->recorded->note_size(read.fact.index, size))
      choice.many_sizes.push_back({read.implementation, read.fact});
  }
}

std::shared_ptr<const Decision> DecisionCache::decide_uncached(
    const schema::Signature& signature, const OnDecision& on_decision) const {
  const SpareEvaluation spare;
  Evaluation& decision = *spare;
  decide(input_, signature, decision);
  auto choice = std::make_shared<Decision>();
  choice->candidates = candidates_;
  choice->plans = plans_for(decision);
  choice->generation = generation_;
  choice->strict = decision.policy.strict;
  choice->preference_unmet = unmet_preference(decision, signature);
  if (decision.rests) choice->rests = &(*candidates_)[*decision.rests];
  if (lock_ != nullptr) choice->deviation = describe_deviation(*lock_, decision, signature);
  choice->beside_lock = decision.lock == LockVerdict::unknown_class;
  choice->only_first = choice->strict && decision.lock == LockVerdict::kept;
  choice->selector_problem = decision.selector_problem;
  if (choice->plans.empty()) choice->nothing_left = nothing_left(input_, decision, signature);
  count_refusals(decision);
  note_reads(decision, signature, *choice);
  if (on_decision && mark_logged(decision)) on_decision(decision, signature);
  return choice;
}

Keeping DecisionCache::remember(const schema::Signature& signature,
                                std::shared_ptr<const Decision> choice) {
  if (choice->reads_more != nullptr) return Keeping::reads_more;
  if (choice->outside_of != nullptr) return Keeping::outside;
  ClassKey key;
  if (!layout_.key_of(schema::FactsOf{signature}, key)) return Keeping::no_key;
  return table_.insert(key, choice) != nullptr ? Keeping::kept : Keeping::full;
}

DecisionCache::Answer DecisionCache::choose(const schema::Signature& signature,
                                            const OnDecision& on_decision) {
  ClassKey key;
  const bool keyed = layout_.key_of(schema::FactsOf{signature}, key);
  if (keyed) {
    if (const Decision* known = table_.find(key)) return {known, nullptr, true};
  }
  std::shared_ptr<const Decision> made = decide_uncached(signature, on_decision);
  const Decision* const choice = made.get();
  if (choice->reads_more != nullptr) return {choice, std::move(made), false, Keeping::reads_more};
  if (choice->outside_of != nullptr) return {choice, std::move(made), false, Keeping::outside};
  if (!keyed) return {choice, std::move(made), false, Keeping::no_key};
  const Decision* kept = nullptr;
  // Without memory for the entry, the call runs with its decision, which is not kept.
  base::if_memory([&] { kept = table_.insert(key, made); });
  if (kept != nullptr) {
    const bool crowded = table_.size() > ClassTable::kMany && !crowded_.exchange(true);
    return {kept, nullptr, false, Keeping::kept, crowded};
  }
  const bool many = unkept_.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostUnkept;
  return {choice, std::move(made), false, many ? Keeping::overfull : Keeping::full};
}

}  // namespace opmux::dispatch
