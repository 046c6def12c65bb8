#include "policy/formula_text.hpp"

#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace opmux::policy {
namespace {

using Op = registry::WhereExpression::Op;

std::string_view sign_of(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::subtract: return "-";
    case Op::multiply: return "*";
    case Op::divide: return "/";
    case Op::modulo: return "%";
    case Op::equal: return "==";
    case Op::not_equal: return "!=";
    case Op::less: return "<";
    case Op::less_equal: return "<=";
    case Op::greater: return ">";
    case Op::greater_equal: return ">=";
    case Op::logical_and: return "&&";
    case Op::logical_or: return "||";
    case Op::negate: return "-";
    case Op::logical_not: return "!";
    default: return "?";
  }
}

/// Removes and returns the last text.
std::string take_last(std::vector<std::string>& texts) {
  std::string last = std::move(texts.back());
  texts.pop_back();
  return last;
}

std::string join_last(Op op, std::vector<std::string>& texts) {
  if (op == Op::negate || op == Op::logical_not) {
    return base::concat("(", sign_of(op), take_last(texts), ")");
  }
  const std::string right = take_last(texts), left = take_last(texts);
  if (op != Op::conditional) return base::concat("(", left, sign_of(op), right, ")");
  return base::concat("(", take_last(texts), "?", left, ":", right, ")");
}

}  // namespace

std::string to_string(const registry::Schema& schema, const registry::Formula& formula) {
  std::vector<std::string> texts;
  for (const registry::WhereExpression::Step& step : formula.steps) {
    if (step.op == Op::constant) {
      texts.push_back(std::to_string(step.value));
    } else if (step.op == Op::scalar) {
      texts.push_back(registry::describe(schema, formula.facts[static_cast<size_t>(step.index)]));
    } else {
      texts.push_back(join_last(step.op, texts));
    }
  }
  return texts.empty() ? std::string() : texts.back();
}

}  // namespace opmux::policy
