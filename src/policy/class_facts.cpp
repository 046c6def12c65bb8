#include "policy/class_facts.hpp"

namespace opmux::policy {
namespace {

using FactIs = ClassFact::Is;
using registry::Predicate;
using registry::Relation;

bool holds_of(const ClassFact& known, int64_t value) {
  if (value == registry::kAbsent || known.is == FactIs::absent) {
    return known.is == FactIs::absent && value == registry::kAbsent;
  }
  switch (known.is) {
    case FactIs::equal: return value == known.value;
    case FactIs::not_equal: return value != known.value;
    case FactIs::at_least: return value >= known.value;
    case FactIs::below: return value < known.value;
    case FactIs::multiple: return value % known.value == 0;
    case FactIs::not_multiple: return value % known.value != 0;
    default: return false;
  }
}

Relation relation_of(FactIs is) {
  switch (is) {
    case FactIs::at_least:
    case FactIs::below:
    case FactIs::absent:
      return Relation::at_least;  // every predicate on the fact also tests its presence
    case FactIs::multiple:
    case FactIs::not_multiple: return Relation::multiple_of;
    default: return Relation::equals;
  }
}

}  // namespace

bool holds(const ClassFact& known, const registry::Signature& signature) {
  if (known.is != FactIs::answered)
    return holds_of(known, registry::value_of(signature, known.fact));
  const registry::Answer answer = known.formula->answer(registry::FactsOf{signature});
  return static_cast<int64_t>(answer) == known.value;
}

void add_dependencies(const ClassFact& known, registry::Dependencies& into) {
  if (known.is == FactIs::answered) return into.add(*known.formula);
  into.add(Predicate{known.fact, relation_of(known.is), known.value});
}

}  // namespace opmux::policy
