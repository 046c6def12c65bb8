#include "base/line_records.hpp"

#include <algorithm>
#include <cstdint>

namespace opmux::base {
namespace {

constexpr size_t kSumDigits = 16;

std::string sum_of(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325u;  // FNV-1a
  for (const char byte : text) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  std::string digits(kSumDigits, '0');
  for (size_t i = kSumDigits; i-- > 0; sum >>= 4) digits[i] = "0123456789abcdef"[sum & 15];
  return digits;
}

}  // namespace

std::string checked_line(std::string_view text) {
  return std::string(text) + " " + sum_of(text) + "\n";
}

std::optional<std::string_view> text_of_checked(std::string_view line) {
  if (line.size() <= kSumDigits) return {};
  const std::string_view text = line.substr(0, line.size() - kSumDigits - 1);
  if (line[text.size()] != ' ' || line.substr(text.size() + 1) != sum_of(text)) return {};
  return text;
}

std::string_view take_until(std::string_view& rest, char end) {
  const size_t size = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, size);
  rest.remove_prefix(std::min(size + 1, rest.size()));
  return part;
}

}  // namespace opmux::base
