#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "config/text_node.hpp"

namespace opmux::config {

/// What is wrong with a text, in the order in which it is found. Not thread-safe.
class Problems {
 public:
  void add(Mark at, std::string_view reason, std::string text);

  bool none() const { return problems_.empty(); }
  size_t count() const { return problems_.size(); }

  /// `invalid_argument` with the reason of the first, by place, and a message that shows the line
  /// of each with a caret under its column; ok if there is none. At most 20 are shown.
  Status status(std::string_view file, std::string_view source) const;

 private:
  struct Problem {
    Mark at;
    std::string reason, text;
  };
  std::vector<Problem> problems_;
};

/// The lines of a text, for places in it. Points into the text.
class SourceLines {
 public:
  explicit SourceLines(std::string_view text);

  /// Without its end; empty if there is no such line. Lines count from 1.
  std::string_view line(int number) const;
  /// Where a place is in the text; the end if there is no such place.
  size_t offset_of(Mark at) const;
  Mark mark_of(size_t offset) const;

 private:
  std::string_view text_;
  std::vector<size_t> starts_;
};

/// Where byte `index` of a scalar's text stands in its source. Quotes, escapes, folded lines and
/// indentation are passed over.
Mark place_in_scalar(const SourceLines& lines, std::string_view source, const TextNode& scalar,
                     size_t index);

}  // namespace opmux::config
