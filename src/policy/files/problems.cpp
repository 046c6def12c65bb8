#include "policy/files/problems.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace opmux::policy {
namespace {

constexpr size_t kMostShown = 20, kMostProblems = 1000;
constexpr size_t kWidestLine = 96;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The line with a caret under the column. Shows only the part of a long line around the column.
std::string excerpt(std::string_view line, int column) {
  size_t at = std::min(static_cast<size_t>(std::max(column, 1)) - 1, line.size());
  if (line.size() > kWidestLine && at > kWidestLine / 2) {
    const size_t cut = std::min(at - kWidestLine / 2, line.size() - kWidestLine);
    line.remove_prefix(cut);
    at -= cut;
  }
  std::string shown(line.substr(0, kWidestLine));
  // Keep tabs, so that the caret is aligned at any tab width.
  std::string below(shown.substr(0, at));
  for (char& c : below) c = c == '\t' ? '\t' : ' ';
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < ' ' && c != '\t') || byte >= 0xF8) c = '?';  // not valid in UTF-8
  }
  return base::concat("\n  ", shown, "\n  ", below, "^");
}

}  // namespace

void Problems::add(Mark at, std::string_view reason, std::string text) {
  if (problems_.size() >= kMostProblems) return;
  problems_.push_back({at, std::string(reason), std::move(text)});
}

Status Problems::status(std::string_view file, std::string_view source) const {
  if (none()) return {};
  std::vector<const Problem*> sorted;
  for (const Problem& problem : problems_) sorted.push_back(&problem);
  // Problems at the same location keep the order in which they were added, by address.
  std::sort(sorted.begin(), sorted.end(), [](const Problem* a, const Problem* b) {
    return std::tuple(a->at.line, a->at.column, a) < std::tuple(b->at.line, b->at.column, b);
  });
  const SourceLines lines(source);
  std::string message;
  for (size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i) {
    const Problem& problem = *sorted[i];
    message +=
        base::concat(i == 0 ? "" : "\n", file, ":", problem.at.line, ":", problem.at.column, ": ",
                     problem.text, excerpt(lines.line(problem.at.line), problem.at.column));
  }
  if (sorted.size() > kMostShown) {
    message += base::concat("\n", file, ": and ", sorted.size() - kMostShown, " more");
  }
  // The text and its name may come from another user, and people read the message in a terminal.
  return {Code::invalid_argument, sorted.front()->reason, base::without_controls(message)};
}

SourceLines::SourceLines(std::string_view text) : text_(text.substr(0, UINT32_MAX)) {
  // The exact size, because a text may consist of line ends.
  starts_.reserve(static_cast<size_t>(std::ranges::count(text_, '\n')) + 1);
  starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

std::string_view SourceLines::line(int number) const {
  if (number < 1 || static_cast<size_t>(number) > starts_.size()) return {};
  const size_t start = starts_[static_cast<size_t>(number) - 1];
  std::string_view line = text_.substr(start);
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

size_t SourceLines::offset_of(Mark at) const {
  if (at.line < 1 || static_cast<size_t>(at.line) > starts_.size()) return text_.size();
  const size_t start = starts_[static_cast<size_t>(at.line) - 1];
  return std::min(start + static_cast<size_t>(std::max(at.column, 1)) - 1, text_.size());
}

Mark SourceLines::mark_of(size_t offset) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  const size_t line = static_cast<size_t>(after - starts_.begin());
  return {static_cast<int>(line), static_cast<int>(offset - starts_[line - 1] + 1)};
}

Mark place_in_scalar(const SourceLines& lines, std::string_view source, const TextNode& scalar,
                     size_t index) {
  size_t at = lines.offset_of(scalar.at);
  const std::string_view text(scalar.text);
  for (size_t i = 0; i < std::min(index + 1, text.size()); ++i) {
    const bool space = is_space(text[i]);
    while (at < source.size() && (space ? !is_space(source[at]) : source[at] != text[i])) ++at;
    if (i == index) break;
    if (at < source.size()) ++at;
  }
  if (index >= text.size()) {
    while (at < source.size() && at > 0 && is_space(source[at - 1])) --at;
  }
  return lines.mark_of(std::min(at, source.size()));
}

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

}  // namespace opmux::policy
