#include "schema/dependencies.hpp"

#include <algorithm>
#include <utility>

namespace opmux::schema {
namespace {

template <class T>
void insert_sorted(std::vector<T>& into, const T& item) {
  const auto at = std::lower_bound(into.begin(), into.end(), item);
  if (at == into.end() || *at != item) into.insert(at, item);
}

}  // namespace

void Dependencies::add(Fact fact) { insert_sorted(exact_, fact); }

void Dependencies::add(const Predicate& predicate) {
  if (predicate.fact.kind != FactKind::dim) return add(predicate.fact);
  insert_sorted(questions_, predicate);
}

void Dependencies::add(const Formula& formula) { insert_sorted(formulas_, formula); }

void Dependencies::add(std::shared_ptr<const Lookup> lookup) {
  const auto known = std::ranges::find(lookups_, lookup);
  if (known == lookups_.end()) lookups_.push_back(std::move(lookup));
}

void Dependencies::add(const Dependencies& other) {
  for (const Fact& fact : other.exact_) add(fact);
  for (const Predicate& question : other.questions_) insert_sorted(questions_, question);
  for (const Formula& formula : other.formulas_) insert_sorted(formulas_, formula);
  for (const auto& lookup : other.lookups_) add(lookup);
}

std::vector<Fact> Dependencies::facts() const {
  std::vector<Fact> all = exact_;
  for (const Predicate& question : questions_) insert_sorted(all, question.fact);
  for (const Formula& formula : formulas_) {
    for (const Fact& fact : formula.facts) insert_sorted(all, fact);
  }
  for (const auto& lookup : lookups_) {
    for (const Fact& fact : lookup->facts()) insert_sorted(all, fact);
  }
  return all;
}

}  // namespace opmux::schema
