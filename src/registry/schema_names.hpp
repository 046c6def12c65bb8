#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Keywords and names that occur only in schemas, and the quoting of their strings. names.hpp has
/// the names of operators, providers and implementations.
namespace opmux::registry {

inline constexpr size_t kMaxNameBytes = 64;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper_name(std::string_view word);  ///< [A-Z][A-Z0-9]*: a dimension or dtype variable
bool is_schema_keyword(std::string_view word);

std::string quote(std::string_view text);
/// Inverse of quote(); returns false for an unknown escape.
bool unquote(std::string_view quoted, std::string& text);

}  // namespace opmux::registry
