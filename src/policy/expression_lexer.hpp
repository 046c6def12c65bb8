#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/expression.hpp"

namespace opmux::policy {

/// A piece of a condition's text.
struct ExpressionToken {
  enum class Kind : uint8_t { integer, text, word, sign, end };
  Kind kind = Kind::end;
  size_t at = 0;
  uint64_t number = 0;    ///< of an integer
  std::string text = {};  ///< a text without quotes and escapes; a word or sign as it stands
};

/// Cuts a text into tokens, the last of kind `end`; nothing, and `problem` set, if it cannot be.
std::optional<std::vector<ExpressionToken>> cut_expression(std::string_view text,
                                                           ExpressionProblem& problem);

}  // namespace opmux::policy
