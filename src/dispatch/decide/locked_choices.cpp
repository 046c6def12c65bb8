#include "dispatch/decide/locked_choices.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/text.hpp"
#include "dispatch/decide/evaluation.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

bool by_scope(const policy::Origin& origin) {
  return origin.layer != nullptr && origin.layer->source() == policy::Source::scope;
}

LockVerdict verdict_on(const LockedClass* locked, Evaluation& decision) {
  if (locked == nullptr) return LockVerdict::unknown_class;
  const auto at = std::ranges::find_if(decision.verdicts, [&](const CandidateVerdict& verdict) {
    return verdict.implementation->id == locked->implementation;
  });
  if (at == decision.verdicts.end()) return LockVerdict::refused;
  if (!at->accepted()) return by_scope(at->by) ? LockVerdict::overruled : LockVerdict::refused;
  const auto index = static_cast<uint16_t>(at - decision.verdicts.begin());
  const auto place = std::ranges::find(decision.order, index);
  if (place != decision.order.begin() && decision.policy.has_list &&
      by_scope(decision.policy.list_by)) {
    return LockVerdict::overruled;
  }
  std::rotate(decision.order.begin(), place, place + 1);
  decision.rests.reset();  // the locked implementation is the winner regardless of open breakers
  return LockVerdict::kept;
}

}  // namespace

const LockedClasses* LockSet::of(std::string_view op) const {
  const auto found = by_op.find(op);
  return found == by_op.end() ? nullptr : &found->second;
}

void apply_lock(const LockSet& lock, const schema::Signature& signature, Evaluation& decision) {
  const LockedClasses* const classes = lock.of(signature.schema->name);
  decision.locked = classes == nullptr ? nullptr : classes->find(signature);
  decision.lock = verdict_on(decision.locked, decision);
  const bool deviates =
      decision.lock == LockVerdict::unknown_class || decision.lock == LockVerdict::refused;
  if (!deviates || !decision.policy.strict) return;
  for (const uint16_t index : decision.order) {
    CandidateVerdict& verdict = decision.verdicts[index];
    verdict.reason = Reason::lock_deviation;
    verdict.text = base::concat("it is not locked by ", lock.name,
                                " for this call, and strict allows no other");
  }
  decision.order.clear();
}

std::string describe_deviation(const LockSet& lock, const Evaluation& decision,
                               const schema::Signature& signature) {
  if (decision.lock == LockVerdict::unknown_class) {
    return base::concat(lock.name, " has no entry for this call of ", signature.schema->name);
  }
  if (decision.lock != LockVerdict::refused) return {};
  const std::string& id = decision.locked->implementation;
  const auto at = std::ranges::find_if(decision.verdicts, [&](const CandidateVerdict& verdict) {
    return verdict.implementation->id == id;
  });
  if (at == decision.verdicts.end())
    return base::concat(lock.name, " locks ", id, ", which is not registered");
  return base::concat(lock.name, " locks ", id, ", which is refused: ", code_of(at->reason), " ",
                      describe(*at, signature));
}

Status no_deviation(std::string_view why, LockVerdict verdict) {
  const std::string_view help = verdict == LockVerdict::unknown_class
                                    ? "add the call to the lock (`opmux lock`)"
                                    : "make it usable again, lock another (`opmux lock`)";
  return {Code::frozen, "lock.deviation",
          base::concat(why, "; the runtime is frozen, and strict allows no other: ", help,
                       ", or call without strict")};
}

namespace {

using policy::ClassFact;

constexpr size_t kWordBits = 64;
/// Up to this many values, one yes/no question per value makes shorter class keys than the value.
constexpr size_t kFewValues = 8;

void put(std::vector<uint64_t>& bits, size_t index) {
  if (bits.size() <= index / kWordBits) bits.resize(index / kWordBits + 1);
  bits[index / kWordBits] |= uint64_t{1} << index % kWordBits;
}

uint64_t word_at(const std::vector<uint64_t>& bits, size_t word) {
  return word < bits.size() ? bits[word] : 0;
}

/// The classes with most facts first, otherwise in the same order. A class that a lookup does not
/// know has fewer facts and may contain one that it knows.
std::vector<LockedClass> most_facts_first(std::vector<LockedClass> classes) {
  std::vector<size_t> order(classes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const size_t left = classes[a].when.size(), right = classes[b].when.size();
    return left != right ? left > right : a < b;
  });
  std::vector<LockedClass> sorted;
  sorted.reserve(classes.size());
  for (const size_t i : order) sorted.push_back(std::move(classes[i]));
  return sorted;
}

}  // namespace

LockedClasses::LockedClasses(std::vector<LockedClass> classes)
    : classes_(most_facts_first(std::move(classes))) {
  for (size_t i = 0; i < classes_.size(); ++i) {
    for (const ClassFact& fact : classes_[i].when) add(fact, i);
  }
  add_dependencies();
}

void LockedClasses::add(const ClassFact& fact, size_t index) {
  if (fact.is == ClassFact::Is::equal) {
    auto at = std::ranges::find(exact_, fact.fact, &Exact::fact);
    if (at == exact_.end()) at = exact_.insert(at, Exact{fact.fact, {}, {}});
    put(at->any, index);
    put(at->by_value[fact.value], index);
    return;
  }
  auto at =
      std::ranges::find_if(questions_, [&](const Question& each) { return each.fact == fact; });
  if (at == questions_.end()) at = questions_.insert(at, Question{fact, {}});
  put(at->classes, index);
}

void LockedClasses::add_dependencies() {
  for (const Question& question : questions_) {
    policy::add_dependencies(question.fact, dependencies_);
  }
  for (const Exact& exact : exact_) {
    if (exact.by_value.size() > kFewValues) {
      dependencies_.add(exact.fact);
      continue;
    }
    for (const auto& [value, classes] : exact.by_value) {
      policy::add_dependencies({exact.fact, ClassFact::Is::equal, value}, dependencies_);
    }
  }
}

const LockedClass* LockedClasses::find(const schema::Signature& signature) const {
  Some left((classes_.size() + kWordBits - 1) / kWordBits, ~uint64_t{0});
  for (const Exact& exact : exact_) {
    const auto same = exact.by_value.find(schema::value_of(signature, exact.fact));
    for (size_t i = 0; i < left.size(); ++i) {
      const uint64_t agreeing = same == exact.by_value.end() ? 0 : word_at(same->second, i);
      left[i] &= ~word_at(exact.any, i) | agreeing;
    }
  }
  for (const Question& question : questions_) {
    if (policy::holds(question.fact, signature)) continue;
    for (size_t i = 0; i < left.size(); ++i) left[i] &= ~word_at(question.classes, i);
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) continue;
    const size_t index = i * kWordBits + static_cast<size_t>(std::countr_zero(left[i]));
    return index < classes_.size() ? &classes_[index] : nullptr;
  }
  return nullptr;
}

}  // namespace opmux::dispatch
