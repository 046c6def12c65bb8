#include "config/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/text.hpp"

namespace opmux::config {
namespace {

constexpr std::array<std::string_view, 3> kTrue{"true", "True", "TRUE"};
constexpr std::array<std::string_view, 3> kFalse{"false", "False", "FALSE"};
constexpr size_t kLongestShown = 60;

template <size_t count>
bool one_of(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// The number that the whole text represents.
template <class T>
std::optional<T> whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T number{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

bool digits_only(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Words such as "inf" and "nan" count as strings.
bool looks_real(std::string_view text) {
  return text.find_first_of("0123456789") != text.npos &&
         text.find_first_not_of("0123456789+-.eE") == text.npos && whole<double>(text);
}

}  // namespace

ScalarType type_of(const TextNode& scalar) {
  if (scalar.quoted) return ScalarType::text;
  if (one_of(scalar.text, kTrue) || one_of(scalar.text, kFalse)) return ScalarType::boolean;
  if (digits_only(scalar.text)) return ScalarType::integer;
  return looks_real(scalar.text) ? ScalarType::real : ScalarType::text;
}

std::string shown(const TextNode& node) {
  switch (node.kind) {
    case TextNode::Kind::null: return "nothing";
    case TextNode::Kind::list: return "a list";
    case TextNode::Kind::map: return "a map";
    case TextNode::Kind::scalar: break;
  }
  const std::string text =
      node.text.size() > kLongestShown ? node.text.substr(0, kLongestShown) + "..." : node.text;
  switch (type_of(node)) {
    case ScalarType::integer:
    case ScalarType::real: return base::concat("the number ", text);
    case ScalarType::boolean: return text;
    case ScalarType::text: break;
  }
  return base::concat("the string '", text, "'");
}

std::optional<bool> bool_of(const TextNode& node) {
  if (!node.is(TextNode::Kind::scalar) || type_of(node) != ScalarType::boolean) return std::nullopt;
  return one_of(node.text, kTrue);
}

std::optional<int64_t> int_of(const TextNode& node) {
  if (!node.is(TextNode::Kind::scalar) || type_of(node) != ScalarType::integer) return std::nullopt;
  return whole<int64_t>(node.text);
}

std::optional<double> real_of(const TextNode& node) {
  if (!node.is(TextNode::Kind::scalar)) return std::nullopt;
  const ScalarType type = type_of(node);
  if (type != ScalarType::integer && type != ScalarType::real) return std::nullopt;
  return whole<double>(node.text);
}

std::optional<std::string_view> text_of(const TextNode& node) {
  if (!node.is(TextNode::Kind::scalar) || type_of(node) != ScalarType::text) return std::nullopt;
  return node.text;
}

std::optional<int64_t> milliseconds_of(std::string_view text) {
  const auto microseconds = microseconds_of(text);
  if (!microseconds || text.ends_with("us")) return std::nullopt;
  return *microseconds / 1000;
}

std::optional<int64_t> microseconds_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t microseconds;
  };
  constexpr std::array<Unit, 5> kUnits{
      {{"us", 1}, {"ms", 1000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = whole<int32_t>(text.substr(0, digits));
  for (const Unit& unit : kUnits) {
    if (number && text.substr(digits) == unit.name) return *number * unit.microseconds;
  }
  return std::nullopt;
}

}  // namespace opmux::config
