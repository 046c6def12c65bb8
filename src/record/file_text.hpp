#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opmux::record {

/// How texts and numbers stand in the header of a file: one line each, ASCII, words separated by
/// one blank.

inline constexpr std::string_view kTitle = "opmux replay 1";

/// Control characters, bytes beyond ASCII and backslashes as \xHH.
std::string escaped(std::string_view text);
/// False if it is not what escaped() makes.
bool unescape(std::string_view escaped, std::string& text);

/// "[3,4]"
std::string list_text(const std::vector<int64_t>& numbers, char open, char close);

/// Takes words and numbers off the front of a line. Everything returns false, and means nothing
/// further, if it does not find what it looks for.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  /// Exactly this text.
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// Up to the next blank, which stays, or the end; not empty.
  bool word(std::string_view& into) { return until(" ", into); }
  /// Up to one of these characters, which stays, or the end; not empty.
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
  /// Numbers between brackets, at most `most`.
  bool list(char open, char close, size_t most, std::vector<int64_t>& into);
  std::string_view rest() const { return rest_; }
  bool ended() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace opmux::record
