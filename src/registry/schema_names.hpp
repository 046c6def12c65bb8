#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Words that only schemas have, and how their strings are quoted; other names: names.hpp.
namespace opmux::registry {

inline constexpr size_t kMaxNameBytes = 64;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper_name(std::string_view word);  ///< [A-Z][A-Z0-9]*: dimensions, dtype variables
bool is_schema_keyword(std::string_view word);

std::string quote(std::string_view text);
/// Reads what quote() wrote; false for an unknown escape.
bool unquote(std::string_view quoted, std::string& text);

}  // namespace opmux::registry
