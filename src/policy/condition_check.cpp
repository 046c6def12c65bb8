#include "policy/condition_check.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/text.hpp"
#include "registry/facts.hpp"

namespace opmux::policy {
namespace {

using ConditionKind = Condition::Kind;

constexpr int kDeepest = 64;
constexpr int kMostQuestions = 1024;
constexpr int64_t kWidestAlignment = 4096;
constexpr std::array<std::string_view, 4> kAmbient{"grad", "capturing", "deterministic",
                                                   "training"};

std::string leaf_problem(const Condition::Node& node) {
  if (node.compare == Compare::multiple_of && node.value <= 0) {
    return base::concat("a multiple of ", node.value, " is not a valid condition");
  }
  switch (node.kind) {
    case ConditionKind::ambient:
      if (std::find(kAmbient.begin(), kAmbient.end(), node.name) != kAmbient.end()) return {};
      return base::concat("unknown word '", node.name, "'", base::suggestion(node.name, kAmbient));
    case ConditionKind::aligned:
      if (node.value > 0 && node.value <= kWidestAlignment &&
          std::has_single_bit(static_cast<uint64_t>(node.value))) {
        return {};
      }
      return base::concat("an alignment must be a power of two up to 4096, not ", node.value);
    case ConditionKind::layout:
      if (registry::parse_layout(node.text)) return {};
      return base::concat("'", node.text, "' is not an order of dimensions such as \"0213\"");
    default: return {};
  }
}

std::string tree_problem(const Condition& condition, int depth, int& questions) {
  if (depth > kDeepest) return "nested more than 64 deep";
  const Condition::Node& node = condition.node();
  if (node.kind < ConditionKind::all_of) {
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
