#include "policy/conditions/expression_compiler.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/text.hpp"

namespace opmux::policy {

using schema::Fact;
using schema::FactKind;
using schema::Predicate;
using schema::Relation;

namespace {

using FormulaStep = schema::WhereExpression::Step;
using FormulaOp = schema::WhereExpression::Op;

/// A predicate that is always false, because no present fact has the value kAbsent.
Predicate nobody(Fact fact) { return {fact, Relation::equals, schema::kAbsent}; }

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

std::optional<SignedQuestion> as_question(const schema::Formula& formula) {
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

FormulaOp real_step(FormulaOp op) {
  switch (op) {
    case FormulaOp::equal: return FormulaOp::equal_real;
    case FormulaOp::less: return FormulaOp::less_real;
    case FormulaOp::less_equal: return FormulaOp::less_equal_real;
    case FormulaOp::greater: return FormulaOp::greater_real;
    case FormulaOp::greater_equal: return FormulaOp::greater_equal_real;
    default: return op;
  }
}

using schema::Formula;

namespace {

std::string_view sign_of(ExprOp op) {
  switch (op) {
    case ExprOp::negate: return "-";
    case ExprOp::logical_not: return "!";
    case ExprOp::logical_and: return "&&";
    case ExprOp::logical_or: return "||";
    case ExprOp::add: return "+";
    case ExprOp::subtract: return "-";
    case ExprOp::multiply: return "*";
    case ExprOp::divide: return "/";
    case ExprOp::modulo: return "%";
    case ExprOp::equal: return "==";
    case ExprOp::not_equal: return "!=";
    case ExprOp::less: return "<";
    case ExprOp::less_equal: return "<=";
    case ExprOp::greater: return ">";
    case ExprOp::greater_equal: return ">=";
    default: return "";
  }
}

bool is_logical(ExprOp op) { return op == ExprOp::logical_and || op == ExprOp::logical_or; }

bool holds_for_texts(ExprOp op, int order) {
  switch (op) {
    case ExprOp::equal: return order == 0;
    case ExprOp::not_equal: return order != 0;
    case ExprOp::less: return order < 0;
    case ExprOp::less_equal: return order <= 0;
    case ExprOp::greater: return order > 0;
    default: return order >= 0;
  }
}

}  // namespace

std::optional<ExpressionCompiler::Type> ExpressionCompiler::fail(size_t at, std::string text,
                                                                 bool name) {
  problem_ = {at, std::move(text), name};
  return std::nullopt;
}

std::optional<Formula> ExpressionCompiler::finish(const std::optional<Type>& type, size_t at) {
  Formula formula = std::exchange(formula_, {});
  if (!type) return std::nullopt;
  if (type->domain != Domain::boolean) {
    fail(at, base::concat("expected a boolean, found ", shown(*type)));
    return std::nullopt;
  }
  if (formula.steps.size() > schema::WhereExpression::kMaxSteps) {
    fail(at, "a comparison is too large; split it and combine the parts with && and ||");
    return std::nullopt;
  }
  return formula;
}

std::optional<Formula> ExpressionCompiler::question(uint32_t node) {
  return finish(emit(node), expression_[node].at);
}

std::optional<Formula> ExpressionCompiler::equality(uint32_t left, uint32_t right, size_t at) {
  return finish(emit_equal(left, right, at), at);
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit(uint32_t index) {
  const ExprNode& node = expression_[index];
  switch (node.op) {
    case ExprOp::integer: push_constant(node.number); return Type{};
    case ExprOp::real: push_real(std::bit_cast<double>(node.number)); return Type{Domain::floating};
    case ExprOp::boolean: push_constant(node.number); return Type{Domain::boolean};
    case ExprOp::text:
      return fail(node.at, base::concat("the string \"", node.text,
                                        "\" can only be compared with ==, != and in"));
    case ExprOp::list: return fail(node.at, "a list is allowed only after 'in'");
    case ExprOp::name: return emit_name(node);
    case ExprOp::call: return emit_call(node);
    case ExprOp::negate:
    case ExprOp::logical_not: return emit_unary(node);
    case ExprOp::in: return emit_in(node);
    case ExprOp::conditional: return emit_conditional(node);
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal: return emit_relation(node);
    default: return emit_binary(node);
  }
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_unary(const ExprNode& node) {
  const ExprNode& operand = expression_[node.operands[0]];
  if (node.op == ExprOp::negate && operand.op == ExprOp::real) {
    push_real(-std::bit_cast<double>(operand.number));
    return Type{Domain::floating};
  }
  const auto type = emit(node.operands[0]);
  if (!type) return type;
  const Type wanted{node.op == ExprOp::negate ? Domain::integer : Domain::boolean};
  if (*type != wanted) {
    return fail(node.at, base::concat("'", sign_of(node.op), "' needs ", shown(wanted), ", found ",
                                      shown(*type)));
  }
  push({schema::step_of(node.op)});
  return wanted;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_binary(const ExprNode& node) {
  const Type wanted{is_logical(node.op) ? Domain::boolean : Domain::integer};
  for (const uint32_t operand : node.operands) {
    const auto type = emit(operand);
    if (!type) return type;
    if (*type != wanted) {
      return fail(node.at, base::concat("'", sign_of(node.op), "' needs ", shown(wanted),
                                        " on both sides, found ", shown(*type)));
    }
  }
  push({schema::step_of(node.op)});
  return wanted;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_conditional(const ExprNode& node) {
  const auto condition = emit(node.operands[0]);
  if (!condition) return condition;
  if (condition->domain != Domain::boolean) {
    return fail(node.at, base::concat("the condition before '?' must be a boolean, found ",
                                      shown(*condition)));
  }
  const auto yes = emit(node.operands[1]);
  if (!yes) return yes;
  const auto no = emit(node.operands[2]);
  if (!no) return no;
  if (*yes != *no) {
    return fail(node.at, base::concat("the two sides of ':' differ in type: ", shown(*yes), " and ",
                                      shown(*no)));
  }
  push({Code::conditional});
  return yes;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_in(const ExprNode& node) {
  const ExprNode& list = expression_[node.operands[1]];
  if (list.op != ExprOp::list) return fail(list.at, "expected a list such as [64, 128] after 'in'");
  push_constant(0);
  for (const uint32_t item : list.operands) {
    if (!emit_equal(node.operands[0], item, expression_[item].at)) return std::nullopt;
    push({Code::logical_or});
  }
  return Type{Domain::boolean};
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_relation(const ExprNode& node) {
  const uint32_t left = node.operands[0], right = node.operands[1];
  if (is_text(left) && is_text(right)) return emit_texts(node);
  if (node.op == ExprOp::equal) return emit_equal(left, right, node.at);
  if (node.op == ExprOp::not_equal) {
    const auto type = emit_equal(left, right, node.at);
    push({Code::logical_not});
    return type;
  }
  Type other;
  const auto one = emit_sides(left, right, other);
  if (!one) return one;
  if (*one != other || one->domain > Domain::boolean) {
    return fail(node.at, base::concat("'", sign_of(node.op), "' cannot compare ", shown(*one),
                                      " with ", shown(other)));
  }
  const Code step = schema::step_of(node.op);
  push({one->domain == Domain::floating ? real_step(step) : step});
  return Type{Domain::boolean};
}

/// Emits both sides of a comparison, and the conversion of an integer beside a float. Returns the
/// type of the left side; `other` is that of the right side.
std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_sides(uint32_t left,
                                                                       uint32_t right,
                                                                       Type& other) {
  auto one = emit(left);
  if (!one) return one;
  const auto between = static_cast<std::ptrdiff_t>(formula_.steps.size());
  const auto second = emit(right);
  if (!second) return second;
  other = *second;
  const Type integer{}, real{Domain::floating};
  if (*one == real && other == integer) {
    push({Code::to_real});
    other = real;
  } else if (*one == integer && other == real) {
    formula_.steps.insert(formula_.steps.begin() + between, Step{Code::to_real});
    one = real;
  }
  return one;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_texts(const ExprNode& node) {
  const int order = expression_[node.operands[0]].text.compare(expression_[node.operands[1]].text);
  push_constant(holds_for_texts(node.op, order) ? 1 : 0);
  return Type{Domain::boolean};
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_equal(uint32_t left,
                                                                       uint32_t right, size_t at) {
  if (is_text(left) && is_text(right)) {
    push_constant(expression_[left].text == expression_[right].text ? 1 : 0);
    return Type{Domain::boolean};
  }
  if (is_text(left)) std::swap(left, right);
  Code step = Code::equal;
  if (is_text(right)) {
    const auto type = emit(left);
    if (!type || !emit_word(expression_[right], *type)) return std::nullopt;
  } else {
    Type other;
    const auto type = emit_sides(left, right, other);
    if (!type) return type;
    if (other != *type) {
      return fail(at, base::concat(shown(*type), " cannot be compared with ", shown(other)));
    }
    if (type->domain == Domain::floating) step = real_step(step);
  }
  push({step});
  return Type{Domain::boolean};
}

}  // namespace opmux::policy
