#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opmux::record {

/// Encoding of text and numbers in the header of a replay file: ASCII lines of words separated by
/// one space.

inline constexpr std::string_view kTitle = "opmux replay 1";

/// Encodes control characters, non-ASCII bytes and backslashes as \xHH.
std::string escaped(std::string_view text);
/// Decodes the result of escaped(); false for any other text.
bool unescape(std::string_view escaped, std::string& text);

/// Formats numbers as "[3,4]", with the given brackets.
std::string list_text(const std::vector<int64_t>& numbers, char open, char close);

/// Parses a line from left to right. Each function returns false if the next characters do not
/// match; skip() consumes nothing then, and the position after the others is unspecified.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  /// Skips exactly this text.
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// Reads up to the next space, which is not consumed, or the end. False if that is empty.
  bool word(std::string_view& into) { return until(" ", into); }
  /// Reads up to one of these characters, which is not consumed, or the end. False if that is
  /// empty.
  bool until(std::string_view ends, std::string_view& into) {
    into = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(into.size());
    return !into.empty();
  }
  template <class T>
  bool number(T& into) {
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), into);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return true;
  }
  /// Reads comma-separated numbers between brackets, at most `most`.
  bool list(char open, char close, size_t most, std::vector<int64_t>& into);
  std::string_view rest() const { return rest_; }
  bool ended() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace opmux::record
