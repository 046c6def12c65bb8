#include <algorithm>
#include <bit>

#include "dispatch/locked_choices.hpp"

namespace opmux::dispatch {
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

}  // namespace

LockedClasses::LockedClasses(std::vector<LockedClass> classes) : classes_(std::move(classes)) {
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

const LockedClass* LockedClasses::find(const registry::Signature& signature) const {
  Some left((classes_.size() + kWordBits - 1) / kWordBits, ~uint64_t{0});
  for (const Exact& exact : exact_) {
    const auto same = exact.by_value.find(registry::value_of(signature, exact.fact));
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
