#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/expression.hpp"

namespace opmux::schema {

/// One token of a condition.
struct ExpressionToken {
  enum class Kind : uint8_t { integer, text, word, sign, end };
  Kind kind = Kind::end;
  size_t at = 0;
  uint64_t number = 0;    ///< value of an integer
  std::string text = {};  ///< content of a string, or the spelling of a word or sign
};

/// Splits a text into tokens; the last one is of kind `end`. On an error returns nullopt and sets
/// `problem`.
std::optional<std::vector<ExpressionToken>> cut_expression(std::string_view text,
                                                           ExpressionProblem& problem);

}  // namespace opmux::schema
