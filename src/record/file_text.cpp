#include "record/file_text.hpp"

#include "base/text.hpp"

namespace opmux::record {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

bool plain(char c) { return c >= ' ' && c <= '~' && c != '\\'; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool unescape(std::string_view escaped, std::string& text) {
  text.clear();
  while (!escaped.empty()) {
    if (plain(escaped.front())) {
      text += escaped.front();
      escaped.remove_prefix(1);
      continue;
    }
    if (escaped.size() < 4 || !escaped.starts_with("\\x")) return false;
    const size_t high = kDigits.find(escaped[2]), low = kDigits.find(escaped[3]);
    if (high == kDigits.npos || low == kDigits.npos) return false;
    const char c = static_cast<char>(high << 4 | low);
    if (plain(c)) return false;
    text += c;
    escaped.remove_prefix(4);
  }
  return true;
}

std::string list_text(const std::vector<int64_t>& numbers, char open, char close) {
  return base::concat(open, base::join(numbers, ","), close);
}

bool LineReader::list(char open, char close, size_t most, std::vector<int64_t>& into) {
  into.clear();
  if (!skip({&open, 1})) return false;
  if (skip({&close, 1})) return true;
  for (;;) {
    int64_t value = 0;
    if (into.size() == most || !number(value)) return false;
    into.push_back(value);
    if (skip({&close, 1})) return true;
    if (!skip(",")) return false;
  }
}

}  // namespace opmux::record
