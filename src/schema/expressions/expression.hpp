#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schema/expressions/where.hpp"

namespace opmux::schema {

/// An error in a condition.
struct ExpressionProblem {
  size_t at = 0;  ///< position of the token, for a text its byte offset
  std::string text = {};
  bool name = false;   ///< the schema lacks a name that the condition uses
  bool limit = false;  ///< the condition is too large, too deep, or has a number that is too large
};

/// Syntax tree of a condition, independent of a schema.
struct Expression {
  enum class Op : uint8_t {
    integer,
    real,
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
    size_t at = 0;          ///< position of the token; of the sign for an operator
    int64_t number = 0;     ///< value of an integer or boolean; the bits of a real
    std::string text = {};  ///< content of a string, or the name of a name or call
    std::vector<uint32_t> operands = {};
  };

  std::vector<Node> nodes;
  uint32_t root = 0;

  const Node& operator[](uint32_t index) const { return nodes[index]; }
};

using ExprOp = Expression::Op;

inline constexpr size_t kLongestExpression = 16'384;

/// The operation of a where clause that computes an operator of an expression.
WhereExpression::Op step_of(Expression::Op op);
/// How tightly an operator binds its operands: 1 for `||`, more for those that bind tighter, most
/// for values.
size_t precedence(Expression::Op op);

/// Parses the subset of CEL that docs/policy_conditions.md describes. The problem names CEL
/// features that the subset lacks.
std::variant<Expression, ExpressionProblem> parse_expression(std::string_view text);

}  // namespace opmux::schema
