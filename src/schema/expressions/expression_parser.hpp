#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/expressions/expression.hpp"

namespace opmux::schema {

/// One token of a condition.
struct ExpressionToken {
  /// A `name` is a word that is a name even if it is spelled like an operator: `is`.
  enum class Kind : uint8_t { integer, real, text, word, name, sign, end };
  Kind kind = Kind::end;
  size_t at = 0;          ///< position, which problems and nodes repeat
  uint64_t number = 0;    ///< value of an integer, or the bits of a real
  std::string text = {};  ///< content of a string, or the spelling of a word or sign
};

/// Splits a text into tokens; the last one is of kind `end`. On an error returns nullopt and sets
/// `problem`.
std::optional<std::vector<ExpressionToken>> cut_expression(std::string_view text,
                                                           ExpressionProblem& problem);

struct ExpressionLimits {
  size_t nodes = 1024;
  int depth = 64;  ///< of parentheses, calls, lists and unary operators
};

/// Parses tokens; the last one must be of kind `end`.
std::variant<Expression, ExpressionProblem> parse_expression(std::vector<ExpressionToken> tokens,
                                                             ExpressionLimits limits);

}  // namespace opmux::schema
