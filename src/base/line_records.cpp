#include "base/line_records.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/crypto.hpp"
#include "base/text.hpp"

namespace opmux::base {
namespace {

constexpr std::string_view kEscapedBytes = "\\\n\t ";
constexpr std::string_view kEscapeLetters = "\\nts";
constexpr size_t kSumDigits = 16;

std::string sum_of(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325u;  // FNV-1a
  for (const char byte : text) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  std::string digits(kSumDigits, '0');
  for (size_t i = kSumDigits; i-- > 0; sum >>= 4) digits[i] = "0123456789abcdef"[sum & 15];
  return digits;
}

}  // namespace

void append_field(std::string& line, std::string_view text, char separator) {
  for (const char c : text) {
    const size_t place = kEscapedBytes.find(c);
    if (place == kEscapedBytes.npos || (c == ' ' && separator != ' ')) {
      line += c;
    } else {
      line += '\\';
      line += kEscapeLetters[place];
    }
  }
}

std::optional<std::string_view> RecordFields::next() {
  if (ended_) return {};
  ended_ = rest_.find(separator_) == rest_.npos;
  return take_until(rest_, separator_);
}

std::string RecordFields::text() {
  const std::string_view field = next().value_or("");
  std::string out;
  out.reserve(field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      out += field[i];
      continue;
    }
    const size_t letter = ++i < field.size() ? kEscapeLetters.find(field[i]) : field.npos;
    if (letter == field.npos) {
      refuse();
      break;
    }
    out += kEscapedBytes[letter];
  }
  return out;
}

size_t RecordFields::left() const {
  return ended_ ? 0 : 1 + static_cast<size_t>(std::ranges::count(rest_, separator_));
}

std::string checked_line(std::string_view text) { return concat(text, " ", sum_of(text), "\n"); }

std::optional<std::string_view> text_of_checked(std::string_view line) {
  if (line.size() <= kSumDigits) return {};
  const std::string_view text = line.substr(0, line.size() - kSumDigits - 1);
  if (line[text.size()] != ' ' || line.substr(text.size() + 1) != sum_of(text)) return {};
  return text;
}

std::string sealed_text(std::string_view title, std::string_view body) {
  return concat(title, "\n", sha256_hex(std::as_bytes(std::span(body))), "\n", body);
}

std::optional<std::string_view> body_of_sealed(std::string_view title, std::string_view text) {
  if (take_until(text, '\n') != title) return {};
  const std::string_view digest = take_until(text, '\n');
  if (digest != sha256_hex(std::as_bytes(std::span(text)))) return {};
  return text;
}

std::string_view take_until(std::string_view& rest, char end) {
  const size_t size = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, size);
  rest.remove_prefix(std::min(size + 1, rest.size()));
  return part;
}

}  // namespace opmux::base
