#include "policy/conditions/condition_program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/system/cpu_features.hpp"
#include "base/tag_table.hpp"
#include "base/text.hpp"
#include "policy/conditions/expression_compiler.hpp"
#include "policy/rules/token.hpp"
#include "schema/facts.hpp"

namespace opmux::policy {

using schema::Answer;
using schema::Fact;
using schema::FactKind;
using schema::Formula;
using schema::Predicate;
using schema::Relation;

namespace {

using ConditionKind = Condition::Kind;

constexpr int64_t kDeviceTypeMask = 0xffff;  // the bits above hold the device number
/// Maximum nesting of && and ||: the depth of a tree plus that of a parsed condition in it.
constexpr size_t kMostKept = 256;

FactKind fact_kind(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::dtype: return FactKind::dtype;
    case ConditionKind::rank: return FactKind::rank;
    case ConditionKind::device: return FactKind::device;
    case ConditionKind::present: return FactKind::present;
    case ConditionKind::contiguous: return FactKind::contiguous;
    case ConditionKind::aligned: return FactKind::alignment;
    case ConditionKind::layout: return FactKind::layout;
    case ConditionKind::scalar:
    case ConditionKind::real: return FactKind::scalar;
    case ConditionKind::ambient: return FactKind::ambient;
    case ConditionKind::tag: return FactKind::tag;
    default: return FactKind::dim;
  }
}

Predicate leaf_question(Fact fact, const Condition::Node& node) {
  switch (node.kind) {
    case ConditionKind::present:
    case ConditionKind::contiguous:
    case ConditionKind::ambient: return {fact, Relation::equals, 1};
    case ConditionKind::aligned: return {fact, Relation::at_least, node.value};
    case ConditionKind::layout:
      return {fact, Relation::equals, schema::parse_layout(node.text).value_or(schema::kAbsent)};
    default: return question_of(fact, node.compare, node.value);
  }
}

bool is_float(const schema::Schema& schema, Fact fact) {
  return fact.kind == FactKind::scalar && schema.args[fact.index].type == schema::ArgType::floating;
}

schema::WhereExpression::Op code_of(Compare compare) {
  using Code = schema::WhereExpression::Op;
  switch (compare) {
    case Compare::less: return Code::less;
    case Compare::less_equal: return Code::less_equal;
    case Compare::greater: return Code::greater;
    case Compare::greater_equal: return Code::greater_equal;
    default: return Code::equal;
  }
}

std::optional<Fact> fact_of(const schema::Schema& schema, const Condition::Node& node) {
  const std::string_view name =
      node.kind == ConditionKind::rows ? "rows" : std::string_view(node.name);
  return schema::resolve_fact(schema, fact_kind(node.kind), name);
}

/// Whether the comparison is one of floats, because the argument or the constant is a float.
bool compares_reals(const schema::Schema& schema, Fact fact, const Condition::Node& node) {
  return node.kind == ConditionKind::real || is_float(schema, fact);
}

/// The comparison of an int or float argument with a constant. For != it is equality, which the
/// caller negates. Nullopt for other arguments and for divisibility.
std::optional<Formula> real_formula(const schema::Schema& schema, Fact fact,
                                    const Condition::Node& node) {
  using Code = schema::WhereExpression::Op;
  const bool whole = schema.args[fact.index].type == schema::ArgType::integer;
  if (node.compare == Compare::multiple_of || !(whole || is_float(schema, fact))) {
    return std::nullopt;
  }
  Formula formula{.facts = {fact}, .steps = {{Code::scalar, 0, 0}}};
  if (whole) formula.steps.push_back({Code::to_real});
  if (node.kind == ConditionKind::real) {
    formula.steps.push_back({Code::real, 0, schema::float_fact(node.real)});
  } else {
    formula.steps.push_back({Code::constant, 0, node.value});
    formula.steps.push_back({Code::to_real});
  }
  formula.steps.push_back({real_step(code_of(node.compare))});
  return formula;
}

Answer ask(const Predicate& question, const schema::Signature& signature) {
  const int64_t value = schema::value_of(signature, question.fact);
  if (value == schema::kAbsent) return Answer::unknown;
  const bool device = question.fact.kind == FactKind::device;
  return schema::holds(question, device ? value & kDeviceTypeMask : value) ? Answer::yes
                                                                           : Answer::no;
}

Answer negation(Answer answer) {
  if (answer == Answer::unknown) return answer;
  return answer == Answer::yes ? Answer::no : Answer::yes;
}

/// `deciding` if either side is; else unknown if either side is.
Answer joined(Answer a, Answer b, Answer deciding) {
  if (a == deciding || b == deciding) return deciding;
  return a == Answer::unknown ? a : b;
}

}  // namespace

class ConditionProgram::Compiler {
 public:
  Compiler(const schema::Schema& schema, const base::CpuFeatures& cpu, ConditionProgram& program)
      : schema_(schema), cpu_(cpu), program_(program) {}

  ExpressionProblem problem;

  bool add(const Condition& condition) {
    const Condition::Node& node = condition.node();
    switch (node.kind) {
      case ConditionKind::all_of:
      case ConditionKind::any_of:
        return join(node.operands.size(), node.kind == ConditionKind::all_of,
                    [&](size_t i) { return add(node.operands[i]); });
      case ConditionKind::negation: return add(node.operands.front()) && step({.op = Op::negate});
      case ConditionKind::text: return add_text(node.text);
      default: return add_leaf(node);
    }
  }

 private:
  bool step(Step step) {
    program_.steps_.push_back(step);
    return true;
  }
  uint32_t end() const { return static_cast<uint32_t>(program_.steps_.size()); }

  bool add_leaf(const Condition::Node& node) {
    const auto fact = fact_of(schema_, node);
    if (!fact) return cannot_read(node);
    if (compares_reals(schema_, *fact, node)) {
      if (!add_formula(real_formula(schema_, *fact, node))) return cannot_read(node);
    } else {
      step({.question = leaf_question(*fact, node)});
    }
    return node.compare != Compare::not_equal || step({.op = Op::negate});
  }

  bool cannot_read(const Condition::Node& node) {
    problem = {0,
               base::concat("operator ", schema_.name, " has no '", node.name,
                            "' that a condition could read"),
               true};
    return false;
  }

  template <class AddOne>
  bool join(size_t count, bool all, const AddOne& add_one) {
    std::vector<uint32_t> skips;
    if (count == 0) return step({.op = Op::constant, .index = all ? 1u : 0u});
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) {
        skips.push_back(end());
        step({.op = all ? Op::skip_if_no : Op::skip_if_yes});
      }
      if (!add_one(i)) return false;
      if (i > 0) step({.op = all ? Op::join_and : Op::join_or});
    }
    for (const uint32_t at : skips) program_.steps_[at].index = end();
    return true;
  }

  bool add_text(std::string_view text) {
    const auto parsed = schema::parse_expression(text);
    const auto* const expression = std::get_if<Expression>(&parsed);
    if (expression == nullptr) {
      problem = std::get<ExpressionProblem>(parsed);
      return false;
    }
    ExpressionCompiler compiler(*expression, schema_, cpu_);
    if (add_node(*expression, expression->root, compiler)) return true;
    problem = compiler.problem();
    return false;
  }

  bool add_node(const Expression& expression, uint32_t index, ExpressionCompiler& compiler) {
    const Expression::Node& node = expression[index];
    switch (node.op) {
      case ExprOp::logical_and:
      case ExprOp::logical_or:
        return join(2, node.op == ExprOp::logical_and,
                    [&](size_t i) { return add_node(expression, node.operands[i], compiler); });
      case ExprOp::logical_not:
        return add_node(expression, node.operands[0], compiler) && step({.op = Op::negate});
      case ExprOp::in:
        if (expression[node.operands[1]].op == ExprOp::list) {
          return add_alternatives(expression, node, compiler);
        }
        [[fallthrough]];
      default: break;
    }
    if (auto pattern = compiler.tag_pattern(index)) {
      program_.patterns_.push_back(std::move(*pattern));
      return step(
          {.op = Op::match_tag, .index = static_cast<uint32_t>(program_.patterns_.size()) - 1});
    }
    return add_formula(compiler.question(index));
  }

  bool add_alternatives(const Expression& expression, const Expression::Node& node,
                        ExpressionCompiler& compiler) {
    const std::vector<uint32_t>& items = expression[node.operands[1]].operands;
    return join(items.size(), false, [&](size_t i) {
      return add_formula(compiler.equality(node.operands[0], items[i], expression[items[i]].at));
    });
  }

  bool add_formula(std::optional<Formula> formula) {
    if (!formula) return false;
    if (formula->facts.empty()) {
      return step({.op = Op::constant, .index = static_cast<uint32_t>(formula->answer([](Fact) {
                                         return schema::kAbsent;
                                       }))});
    }
    if (const auto question = as_question(*formula)) {
      step({.question = question->question});
      return !question->negated || step({.op = Op::negate});
    }
    program_.formulas_.push_back(std::move(*formula));
    return step({.op = Op::compute, .index = static_cast<uint32_t>(program_.formulas_.size()) - 1});
  }

  const schema::Schema& schema_;
  const base::CpuFeatures& cpu_;
  ConditionProgram& program_;
};

std::optional<ConditionProgram> ConditionProgram::compile(const Condition& condition,
                                                          const schema::Schema& schema,
                                                          ExpressionProblem* problem,
                                                          const base::CpuFeatures& cpu) {
  ConditionProgram program;
  Compiler compiler(schema, cpu, program);
  if (compiler.add(condition)) return program;
  if (problem != nullptr) *problem = std::move(compiler.problem);
  return std::nullopt;
}

template <class Ask>
Answer ConditionProgram::evaluate(const Ask& ask_call) const {
  std::array<Answer, kMostKept> kept;
  size_t count = 0;
  Answer last = Answer::yes;
  for (size_t at = 0; at < steps_.size();) {
    const Step& step = steps_[at++];
    switch (step.op) {
      case Op::constant: last = Answer{static_cast<uint8_t>(step.index)}; break;
      case Op::ask:
      case Op::compute:
      case Op::match_tag: last = ask_call(step); break;
      case Op::negate: last = negation(last); break;
      case Op::skip_if_no:
      case Op::skip_if_yes:
        if (last == (step.op == Op::skip_if_no ? Answer::no : Answer::yes)) {
          at = step.index;
        } else {
          kept[count++] = last;
        }
        break;
      case Op::join_and: last = joined(kept[--count], last, Answer::no); break;
      case Op::join_or: last = joined(kept[--count], last, Answer::yes); break;
    }
  }
  return last;
}

Answer ConditionProgram::answer(const schema::Signature& signature) const {
  return evaluate([&](const Step& step) {
    switch (step.op) {
      case Op::ask: return ask(step.question, signature);
      case Op::compute: return formulas_[step.index].answer(schema::FactsOf{signature});
      default: return Answer{glob_match(patterns_[step.index], base::tag_word(signature.tag))};
    }
  });
}

bool ConditionProgram::never() const {
  return evaluate([](const Step&) { return Answer::unknown; }) == Answer::no;
}

void ConditionProgram::add_dependencies(schema::Dependencies& into) const {
  for (const Step& step : steps_) {
    if (step.op == Op::ask) into.add(step.question);
    if (step.op == Op::match_tag) into.add(Fact{FactKind::tag, 0});
  }
  for (const Formula& formula : formulas_) into.add(formula);
}

namespace {

using ConditionKind = Condition::Kind;

constexpr int kDeepest = 64;
constexpr int kMostQuestions = 1024;
constexpr int64_t kWidestAlignment = 4096;

std::string leaf_problem(const Condition::Node& node) {
  if (node.kind == ConditionKind::real && node.compare == Compare::multiple_of) {
    return base::concat("'", node.name, "' is asked for a multiple of a float");
  }
  if (node.compare == Compare::multiple_of && node.value <= 0) {
    return base::concat("a multiple of ", node.value, " is not a valid condition");
  }
  switch (node.kind) {
    case ConditionKind::real:
      if (std::isfinite(node.real)) return {};
      return base::concat("'", node.name, "' is compared with a number that is not finite");
    case ConditionKind::ambient:
      if (schema::is_ambient(node.name)) return {};
      return base::concat("unknown word '", node.name, "'",
                          base::suggestion(node.name, schema::kAmbientNames));
    case ConditionKind::aligned:
      if (node.value > 0 && node.value <= kWidestAlignment &&
          std::has_single_bit(static_cast<uint64_t>(node.value))) {
        return {};
      }
      return base::concat("an alignment must be a power of two up to 4096, not ", node.value);
    case ConditionKind::layout:
      if (schema::parse_layout(node.text)) return {};
      return base::concat("'", node.text, "' is not an order of dimensions such as \"0213\"");
    default: return {};
  }
}

std::string tree_problem(const Condition& condition, int depth, int& questions) {
  if (depth > kDeepest) return "nested more than 64 deep";
  const Condition::Node& node = condition.node();
  if (node.kind < ConditionKind::all_of || node.kind == ConditionKind::real) {
    return ++questions > kMostQuestions ? "more than 1024 comparisons" : leaf_problem(node);
  }
  for (const Condition& operand : node.operands) {
    std::string problem = tree_problem(operand, depth + 1, questions);
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::string condition_problem(const Condition& condition) {
  int questions = 0;
  return tree_problem(condition, 1, questions);
}

}  // namespace opmux::policy
