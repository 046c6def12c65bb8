#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "config/text_node.hpp"

namespace opmux::config {

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
  std::vector<size_t> starts_;
};

/// The source location of byte `index` of a scalar's text. Skips quotes, escapes, folded lines and
/// indentation.
Mark place_in_scalar(const SourceLines& lines, std::string_view source, const TextNode& scalar,
                     size_t index);

}  // namespace opmux::config
