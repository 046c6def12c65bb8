#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::replay {

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

inline constexpr std::string_view kSuffix = ".opmux-replay";

/// A folder of replay files that only this user can read (0700, files 0600). Several processes may
/// share a folder. Thread-safe.
class RecordFolder {
 public:
  RecordFolder(std::string path, size_t most_files)
      : path_(std::move(path)), most_files_(most_files) {}

  const std::string& path() const { return path_; }
  /// The path of the file with this name, which has no suffix.
  std::string path_of(std::string_view name) const;

  /// Writes a file atomically. Fails with "record.known" if the file exists, "record.full" if the
  /// folder has `most_files` files, and "record.folder" or "record.write" on system errors.
  Status write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
  size_t most_files_;
};

}  // namespace opmux::replay
