#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opmux::config {

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

}  // namespace opmux::config
