#include "policy/formula_question.hpp"

#include <span>

namespace opmux::policy {

using registry::Fact;
using registry::FactKind;
using registry::Predicate;
using registry::Relation;

namespace {

using FormulaStep = registry::WhereExpression::Step;
using FormulaOp = registry::WhereExpression::Op;

/// A predicate that is always false, because no present fact has the value kAbsent.
Predicate nobody(Fact fact) { return {fact, Relation::equals, registry::kAbsent}; }

std::optional<Compare> compare_of(FormulaOp op) {
  switch (op) {
    case FormulaOp::equal: return Compare::equal;
    case FormulaOp::less: return Compare::less;
    case FormulaOp::less_equal: return Compare::less_equal;
    case FormulaOp::greater: return Compare::greater;
    case FormulaOp::greater_equal: return Compare::greater_equal;
    default: return std::nullopt;
  }
}

/// The comparison with its sides exchanged.
Compare mirrored(Compare compare) {
  switch (compare) {
    case Compare::less: return Compare::greater;
    case Compare::less_equal: return Compare::greater_equal;
    case Compare::greater: return Compare::less;
    case Compare::greater_equal: return Compare::less_equal;
    default: return compare;
  }
}

bool is(const FormulaStep& step, FormulaOp op) { return step.op == op; }

std::optional<Predicate> comparison_of(Fact fact, std::span<const FormulaStep> steps) {
  const auto compare = compare_of(steps[2].op);
  if (!compare) return std::nullopt;
  if (is(steps[0], FormulaOp::scalar) && is(steps[1], FormulaOp::constant)) {
    return question_of(fact, *compare, steps[1].value);
  }
  if (is(steps[0], FormulaOp::constant) && is(steps[1], FormulaOp::scalar)) {
    return question_of(fact, mirrored(*compare), steps[0].value);
  }
  return std::nullopt;
}

/// Recognizes `fact % m == k`: divisibility, or the type of a device.
std::optional<Predicate> remainder_of(Fact fact, std::span<const FormulaStep> steps) {
  const bool form = is(steps[0], FormulaOp::scalar) && is(steps[1], FormulaOp::constant) &&
                    is(steps[2], FormulaOp::modulo) && is(steps[3], FormulaOp::constant) &&
                    is(steps[4], FormulaOp::equal);
  if (!form) return std::nullopt;
  if (fact.kind == FactKind::device) return Predicate{fact, Relation::equals, steps[3].value};
  if (steps[3].value != 0 || steps[1].value <= 0) return std::nullopt;
  return Predicate{fact, Relation::multiple_of, steps[1].value};
}

}  // namespace

Predicate question_of(Fact fact, Compare compare, int64_t value) {
  switch (compare) {
    case Compare::equal:
    case Compare::not_equal: return {fact, Relation::equals, value};
    case Compare::less:
      return value == INT64_MIN ? nobody(fact) : Predicate{fact, Relation::at_most, value - 1};
    case Compare::less_equal: return {fact, Relation::at_most, value};
    case Compare::greater:
      return value == INT64_MAX ? nobody(fact) : Predicate{fact, Relation::at_least, value + 1};
    case Compare::greater_equal: return {fact, Relation::at_least, value};
    case Compare::multiple_of: return {fact, Relation::multiple_of, value};
  }
  return nobody(fact);
}

std::optional<SignedQuestion> as_question(const registry::Formula& formula) {
  std::span<const FormulaStep> steps = formula.steps;
  if (formula.facts.size() != 1) return std::nullopt;
  const bool negated = is(steps.back(), FormulaOp::logical_not);
  if (negated) steps = steps.first(steps.size() - 1);
  const Fact fact = formula.facts[0];
  std::optional<Predicate> found;
  if (steps.size() == 1) found = Predicate{fact, Relation::equals, 1};
  if (steps.size() == 3) found = comparison_of(fact, steps);
  if (steps.size() == 5) found = remainder_of(fact, steps);
  if (!found) return std::nullopt;
  return SignedQuestion{*found, negated};
}

}  // namespace opmux::policy
