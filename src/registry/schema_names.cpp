#include "registry/schema_names.hpp"

#include <algorithm>
#include <array>

namespace opmux::registry {
namespace {

constexpr std::array<std::string_view, 12> kKeywords{
    "in", "out", "inout", "const", "where", "true", "false", "int", "float", "bool", "enum", "str"};
constexpr std::string_view kEscaped = "\"\\\n\t";
constexpr std::string_view kEscapes = "\"\\nt";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

bool is_upper_name(std::string_view word) {
  return !word.empty() && word.size() <= kMaxNameBytes && is_upper(word[0]) &&
         std::all_of(word.begin(), word.end(), [](char c) { return is_upper(c) || is_digit(c); });
}

bool is_schema_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const size_t escape = kEscaped.find(c);
    if (escape != std::string_view::npos) quoted += '\\';
    quoted += escape == std::string_view::npos ? c : kEscapes[escape];
  }
  return quoted += '"';
}

bool unquote(std::string_view quoted, std::string& text) {
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      text += inner[i];
      continue;
    }
    const size_t escape = ++i < inner.size() ? kEscapes.find(inner[i]) : std::string_view::npos;
    if (escape == std::string_view::npos) return false;
    text += kEscaped[escape];
  }
  return true;
}

}  // namespace opmux::registry
