#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

/// The parts of the text files that processes of opmux write for each other. A record is a line of
/// fields with a separator between them: a tab, or a space in lines whose fields are words. Fields
/// are escaped, so that a text may contain the separator and newlines. A checksum detects a torn
/// line, a digest a changed file.
namespace opmux::base {

/// Appends a field and escapes backslashes, newlines, tabs and, if it is the separator, spaces.
void append_field(std::string& line, std::string_view text, char separator);
template <std::integral T>
void append_field(std::string& line, T number, char) {
  line += std::to_string(number);
}

/// Formats one record, without a newline at the end. Booleans are written as 0 and 1.
template <char separator = '\t', class First, class... Rest>
std::string record(const First& first, const Rest&... rest) {
  std::string line;
  append_field(line, first, separator);
  ((line += separator, append_field(line, rest, separator)), ...);
  return line;
}

/// Reads the fields of a record in order. Missing fields, as in a file of an older version, read as
/// empty or 0. Safe for untrusted bytes.
class RecordFields {
 public:
  explicit RecordFields(std::string_view line, char separator = '\t')
      : rest_(line), separator_(separator) {}

  std::string text();
  template <std::integral T>
  T integer();
  int64_t number() { return integer<int64_t>(); }
  uint64_t count() { return integer<uint64_t>(); }

  /// How many fields were not read yet.
  size_t left() const;
  /// False if a field was malformed or refuse() was called.
  bool good() const { return good_; }
  void refuse() { good_ = false; }

 private:
  std::optional<std::string_view> next();

  std::string_view rest_;
  char separator_;
  bool ended_ = false;
  bool good_ = true;
};

template <std::integral T>
T RecordFields::integer() {
  T value = 0;
  const auto field = next();
  if (!field) return value;
  const char* const start = field->data();
  const char* const end = start + field->size();
  const auto read = std::from_chars(start, end, value);
  if (read.ec != std::errc() || read.ptr != end) refuse();
  return value;
}

/// Returns the text with a checksum and a newline appended, so that readers can detect torn or
/// changed lines.
std::string checked_line(std::string_view text);

/// Returns the text of a checked line, which must be passed without its newline. Nullopt if the
/// checksum does not match.
std::optional<std::string_view> text_of_checked(std::string_view line);

/// Returns a line with the title, a line with the SHA-256 digest of the body, and the body.
std::string sealed_text(std::string_view title, std::string_view body);

/// Returns the body of a sealed text. Nullopt if the title differs or the digest does not match.
std::optional<std::string_view> body_of_sealed(std::string_view title, std::string_view text);

/// Removes and returns the part of `rest` before the first `end`, and removes `end` too. Takes all
/// of `rest` if it does not contain `end`.
std::string_view take_until(std::string_view& rest, char end);

}  // namespace opmux::base
