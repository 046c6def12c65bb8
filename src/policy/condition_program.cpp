#include "policy/condition_program.hpp"

namespace opmux::policy {

using registry::Fact;
using registry::FactKind;
using registry::Predicate;
using registry::Relation;

namespace {

using ConditionKind = Condition::Kind;

constexpr int64_t kDeviceTypeMask = 0xffff;  // above it the fact has the device's number

FactKind fact_kind(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::dtype: return FactKind::dtype;
    case ConditionKind::rank: return FactKind::rank;
    case ConditionKind::device: return FactKind::device;
    case ConditionKind::present: return FactKind::present;
    case ConditionKind::contiguous: return FactKind::contiguous;
    case ConditionKind::aligned: return FactKind::alignment;
    case ConditionKind::layout: return FactKind::layout;
    case ConditionKind::scalar: return FactKind::scalar;
    case ConditionKind::ambient: return FactKind::ambient;
    case ConditionKind::tag: return FactKind::tag;
    default: return FactKind::dim;
  }
}

/// No present fact has this value, and an absent one answers no: the question nobody answers yes.
Predicate never(Fact fact) { return {fact, Relation::equals, registry::kAbsent}; }

Predicate question_of(Fact fact, Compare compare, int64_t value) {
  switch (compare) {
    case Compare::equal:
    case Compare::not_equal: return {fact, Relation::equals, value};
    case Compare::less:
      return value == INT64_MIN ? never(fact) : Predicate{fact, Relation::at_most, value - 1};
    case Compare::less_equal: return {fact, Relation::at_most, value};
    case Compare::greater:
      return value == INT64_MAX ? never(fact) : Predicate{fact, Relation::at_least, value + 1};
    case Compare::greater_equal: return {fact, Relation::at_least, value};
    case Compare::multiple_of: return {fact, Relation::multiple_of, value};
  }
  return never(fact);
}

Predicate leaf_question(Fact fact, const Condition::Node& node) {
  switch (node.kind) {
    case ConditionKind::present:
    case ConditionKind::contiguous:
    case ConditionKind::ambient: return {fact, Relation::equals, 1};
    case ConditionKind::aligned: return {fact, Relation::at_least, node.value};
    case ConditionKind::layout:
      return {fact, Relation::equals,
              registry::parse_layout(node.text).value_or(registry::kAbsent)};
    default: return question_of(fact, node.compare, node.value);
  }
}

bool is_float(const registry::Schema& schema, Fact fact) {
  return fact.kind == FactKind::scalar &&
         schema.args[fact.index].type == registry::ArgType::floating;
}

std::optional<Fact> fact_of(const registry::Schema& schema, const Condition::Node& node) {
  const std::string_view name =
      node.kind == ConditionKind::rows ? "rows" : std::string_view(node.name);
  const auto fact = registry::resolve_fact(schema, fact_kind(node.kind), name);
  // Floats are facts by their bits: nothing to compare numbers with.
  return fact && is_float(schema, *fact) ? std::nullopt : fact;
}

bool answer(const Predicate& question, const registry::Signature& signature) {
  const int64_t value = registry::value_of(signature, question.fact);
  const bool masked = question.fact.kind == FactKind::device && value != registry::kAbsent;
  return registry::holds(question, masked ? value & kDeviceTypeMask : value);
}

}  // namespace

class ConditionProgram::Compiler {
 public:
  Compiler(const registry::Schema& schema, std::vector<Step>& steps)
      : schema_(schema), steps_(steps) {}

  bool add(const Condition& condition) {
    const Condition::Node& node = condition.node();
    switch (node.kind) {
      case ConditionKind::all_of: return add_joined(node, Op::skip_if_false);
      case ConditionKind::any_of: return add_joined(node, Op::skip_if_true);
      case ConditionKind::negation:
        if (!add(node.operands.front())) return false;
        steps_.push_back({.op = Op::negate});
        return true;
      default: return add_leaf(node);
    }
  }

 private:
  bool add_leaf(const Condition::Node& node) {
    const auto fact = fact_of(schema_, node);
    if (!fact) return false;
    steps_.push_back({.question = leaf_question(*fact, node)});
    if (node.compare == Compare::not_equal) steps_.push_back({.op = Op::negate});
    return true;
  }

  bool add_joined(const Condition::Node& node, Op skip) {
    std::vector<size_t> skips;
    for (const Condition& operand : node.operands) {
      if (&operand != node.operands.data()) {
        skips.push_back(steps_.size());
        steps_.push_back({.op = skip});
      }
      if (!add(operand)) return false;
    }
    for (const size_t at : skips) steps_[at].target = static_cast<uint32_t>(steps_.size());
    return true;
  }

  const registry::Schema& schema_;
  std::vector<Step>& steps_;
};

std::optional<ConditionProgram> ConditionProgram::compile(const Condition& condition,
                                                          const registry::Schema& schema) {
  ConditionProgram program;
  if (!Compiler(schema, program.steps_).add(condition)) return std::nullopt;
  return program;
}

bool ConditionProgram::holds(const registry::Signature& signature) const {
  bool yes = true;
  for (size_t at = 0; at < steps_.size();) {
    const Step& step = steps_[at++];
    switch (step.op) {
      case Op::ask: yes = answer(step.question, signature); break;
      case Op::negate: yes = !yes; break;
      case Op::skip_if_false:
        if (!yes) at = step.target;
        break;
      case Op::skip_if_true:
        if (yes) at = step.target;
        break;
    }
  }
  return yes;
}

void ConditionProgram::add_dependencies(registry::Dependencies& into) const {
  for (const Step& step : steps_) {
    if (step.op == Op::ask) into.add(step.question);
  }
}

}  // namespace opmux::policy
