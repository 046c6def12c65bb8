#include <memory>
#include <utility>

#include <opmux/policy.hpp>

#include "base/text.hpp"
#include "schema/expressions/expression.hpp"

namespace opmux {
namespace {

using ConditionKind = Condition::Kind;

std::string_view sign_of(Compare compare) {
  switch (compare) {
    case Compare::equal: return " == ";
    case Compare::not_equal: return " != ";
    case Compare::less: return " < ";
    case Compare::less_equal: return " <= ";
    case Compare::greater: return " > ";
    case Compare::greater_equal: return " >= ";
    case Compare::multiple_of: return " % ";
  }
  return " ? ";
}

std::string comparison(std::string_view left, const Condition::Node& node) {
  const std::string_view rest = node.compare == Compare::multiple_of ? " == 0" : "";
  return base::concat(left, sign_of(node.compare), node.value, rest);
}

std::string device_word(int64_t type) {
  const std::string name = name_of(Device{static_cast<int32_t>(type), 0});
  return name.substr(0, name.rfind(':'));
}

std::string joined(const Condition::Node& node, std::string_view sign) {
  std::string text = "(";
  for (const Condition& operand : node.operands) {
    if (&operand != node.operands.data()) text.append(sign);
    const bool enclosed = operand.node().kind == ConditionKind::text;
    text.append(enclosed ? base::concat("(", operand.to_string(), ")") : operand.to_string());
  }
  return text.append(")");
}

std::string negated(const Condition& operand) {
  const ConditionKind kind = operand.node().kind;
  const std::string text = operand.to_string();
  return kind == ConditionKind::all_of || kind == ConditionKind::any_of
             ? "!" + text
             : base::concat("!(", text, ")");
}

/// Adds a condition's operands if it is of the same kind (all_of or any_of), else the condition.
void flatten_into(std::vector<Condition>& operands, const Condition& condition,
                  ConditionKind kind) {
  if (condition.node().kind != kind) return operands.push_back(condition);
  const auto& inner = condition.node().operands;
  operands.insert(operands.end(), inner.begin(), inner.end());
}

Condition::Node join_node(const Condition& a, const Condition& b, ConditionKind kind) {
  Condition::Node node{.kind = kind};
  flatten_into(node.operands, a, kind);
  flatten_into(node.operands, b, kind);
  return node;
}

std::shared_ptr<const Condition::Node> make_node(Condition::Node node) {
  return std::make_shared<const Condition::Node>(std::move(node));
}

}  // namespace

Condition Condition::dim(std::string name, Compare compare, int64_t value) {
  return Condition(make_node(
      {.kind = ConditionKind::dim, .name = std::move(name), .compare = compare, .value = value}));
}

Condition Condition::rows(Compare compare, int64_t value) {
  return Condition(make_node({.kind = ConditionKind::rows, .compare = compare, .value = value}));
}

Condition Condition::dtype(std::string arg, DType dtype) {
  return Condition(
      make_node({.kind = ConditionKind::dtype, .name = std::move(arg), .value = dtype.packed()}));
}

Condition Condition::rank(std::string arg, Compare compare, int64_t value) {
  return Condition(make_node(
      {.kind = ConditionKind::rank, .name = std::move(arg), .compare = compare, .value = value}));
}

Condition Condition::device(std::string arg, int32_t type) {
  return Condition(
      make_node({.kind = ConditionKind::device, .name = std::move(arg), .value = type}));
}

Condition Condition::present(std::string arg) {
  return Condition(make_node({.kind = ConditionKind::present, .name = std::move(arg)}));
}

Condition Condition::contiguous(std::string arg) {
  return Condition(make_node({.kind = ConditionKind::contiguous, .name = std::move(arg)}));
}

Condition Condition::aligned(std::string arg, int64_t bytes) {
  return Condition(
      make_node({.kind = ConditionKind::aligned, .name = std::move(arg), .value = bytes}));
}

Condition Condition::layout(std::string arg, std::string order) {
  return Condition(
      make_node({.kind = ConditionKind::layout, .name = std::move(arg), .text = std::move(order)}));
}

Condition Condition::scalar(std::string arg, Compare compare, int64_t value) {
  return Condition(make_node(
      {.kind = ConditionKind::scalar, .name = std::move(arg), .compare = compare, .value = value}));
}

Condition Condition::real(std::string arg, Compare compare, double value) {
  return Condition(make_node(
      {.kind = ConditionKind::real, .name = std::move(arg), .compare = compare, .real = value}));
}

Condition Condition::ambient(std::string name) {
  return Condition(make_node({.kind = ConditionKind::ambient, .name = std::move(name)}));
}

Condition Condition::tag(uint32_t tag) {
  return Condition(make_node({.kind = ConditionKind::tag, .value = tag}));
}

Result<Condition> Condition::parse(std::string_view text) {
  auto parsed = schema::parse_expression(text);
  if (const auto* problem = std::get_if<schema::ExpressionProblem>(&parsed)) {
    return Status(Code::invalid_argument, "policy.when",
                  base::concat("column ", problem->at + 1, ": ", problem->text));
  }
  return Condition(make_node({.kind = ConditionKind::text, .text = std::string(text)}));
}

Condition Condition::operator&&(const Condition& other) const {
  return Condition(make_node(join_node(*this, other, ConditionKind::all_of)));
}

Condition Condition::operator||(const Condition& other) const {
  return Condition(make_node(join_node(*this, other, ConditionKind::any_of)));
}

Condition Condition::operator!() const {
  return Condition(make_node({.kind = ConditionKind::negation, .operands = {*this}}));
}

std::string Condition::to_string() const {
  const Node& n = *node_;
  switch (n.kind) {
    case ConditionKind::dim:
    case ConditionKind::scalar: return comparison(n.name, n);
    case ConditionKind::real:
      return base::concat(n.name, sign_of(n.compare), base::number_text(n.real),
                          n.compare == Compare::multiple_of ? " == 0" : "");
    case ConditionKind::rows: return comparison("rows", n);
    case ConditionKind::rank: return comparison(base::concat("rank(", n.name, ")"), n);
    case ConditionKind::dtype:
      return base::concat("dtype(", n.name, ") == \"",
                          name_of(DType::from_packed(static_cast<uint32_t>(n.value))), "\"");
    case ConditionKind::device:
      return base::concat("device(", n.name, ") == \"", device_word(n.value), "\"");
    case ConditionKind::present: return base::concat("has(", n.name, ")");
    case ConditionKind::contiguous: return base::concat("contiguous(", n.name, ")");
    case ConditionKind::aligned: return base::concat("aligned(", n.name, ", ", n.value, ")");
    case ConditionKind::layout: return base::concat("layout(", n.name, ") == \"", n.text, "\"");
    case ConditionKind::ambient: return n.name;
    case ConditionKind::tag: return base::concat("tag == ", n.value);
    case ConditionKind::text: return n.text;
    case ConditionKind::all_of: return joined(n, " && ");
    case ConditionKind::any_of: return joined(n, " || ");
    case ConditionKind::negation: return negated(n.operands.front());
  }
  return {};
}

}  // namespace opmux
