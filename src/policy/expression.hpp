#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opmux::policy {

/// What is wrong with the text of a condition, and where.
struct ExpressionProblem {
  size_t at = 0;  ///< bytes from the start of the text
  std::string text = {};
  bool name = false;  ///< something is named that a schema does not have
};

/// The text of a condition as a tree: what was written, before it meets a schema.
struct Expression {
  enum class Op : uint8_t {
    integer,
    boolean,
    text,
    name,
    call,
    list,
    negate,
    logical_not,
    logical_and,
    logical_or,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    in,
    conditional,
  };
  struct Node {
    Op op = Op::integer;
    size_t at = 0;          ///< where it stands in the text; of an operator its sign
    int64_t number = 0;     ///< of an integer or boolean
    std::string text = {};  ///< of a text, a name or a call
    std::vector<uint32_t> operands = {};
  };

  std::vector<Node> nodes;
  uint32_t root = 0;

  const Node& operator[](uint32_t index) const { return nodes[index]; }
};

using ExprOp = Expression::Op;

inline constexpr size_t kLongestExpression = 16'384;
inline constexpr size_t kMostExpressionNodes = 1024;
inline constexpr int kDeepestExpression = 64;

/// Reads the subset of CEL that docs/policy_conditions.md describes. What CEL has and the subset
/// does not is named in the problem.
std::variant<Expression, ExpressionProblem> parse_expression(std::string_view text);

}  // namespace opmux::policy
