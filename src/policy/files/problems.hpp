#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::policy {

/// A location in a text. Lines and columns count from 1, columns in bytes.
struct Mark {
  int line = 1;
  int column = 1;
};

/// A node of a parsed YAML or JSON text, with the location where it starts. Scalars are not
/// converted: the reader that expects a number decides whether `5` is one.
struct TextNode {
  enum class Kind : uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  bool quoted = false;  ///< a scalar in quotes or in a block
  Mark at;
  std::string text;             ///< content of a scalar
  std::vector<TextNode> items;  ///< items of a list, or key, value, key, value ... of a map

  bool is(Kind other) const { return kind == other; }
};

/// Collects the errors in a text. Not thread-safe.
class Problems {
 public:
  void add(Mark at, std::string_view reason, std::string text);

  bool none() const { return problems_.empty(); }
  size_t count() const { return problems_.size(); }

  /// Ok if there are no problems. Otherwise `invalid_argument` with the reason of the first problem
  /// by location. The message shows each problem's line with a caret under its column, at most 20.
  Status status(std::string_view file, std::string_view source) const;

 private:
  struct Problem {
    Mark at;
    std::string reason, text;
  };
  std::vector<Problem> problems_;
};

/// Converts between byte offsets and lines and columns of a text. Points into the text.
class SourceLines {
 public:
  explicit SourceLines(std::string_view text);

  /// A line without its line end; empty if there is no such line. Lines count from 1.
  std::string_view line(int number) const;
  /// The byte offset of a mark; the text's size if there is no such line.
  size_t offset_of(Mark at) const;
  Mark mark_of(size_t offset) const;

 private:
  std::string_view text_;
  std::vector<uint32_t> starts_;
};

/// The source location of byte `index` of a scalar's text. Skips quotes, escapes, folded lines and
/// indentation.
Mark place_in_scalar(const SourceLines& lines, std::string_view source, const TextNode& scalar,
                     size_t index);

/// Type of a scalar by the core schema of YAML 1.2, which agrees with JSON. Quoted scalars are
/// strings.
enum class ScalarType : uint8_t { text, integer, real, boolean };
ScalarType type_of(const TextNode& scalar);

/// A node as messages name it: "a list", "a map", "nothing", "the number 5", "the string 'on'".
std::string shown(const TextNode& node);

/// The value of a scalar; nullopt if the node is of another type or out of range.
std::optional<bool> bool_of(const TextNode& node);
std::optional<int64_t> int_of(const TextNode& node);
std::optional<double> real_of(const TextNode& node);  ///< accepts integers too
std::optional<std::string_view> text_of(const TextNode& node);

/// Parses "500ms", "30s", "5m", "1h"; the result is in milliseconds.
std::optional<int64_t> milliseconds_of(std::string_view text);
/// Parses the same and "500us"; the result is in microseconds.
std::optional<int64_t> microseconds_of(std::string_view text);

}  // namespace opmux::policy
