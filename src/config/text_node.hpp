#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opmux::config {

/// A place in a text. Lines and columns count from 1, columns in bytes.
struct Mark {
  int line = 1;
  int column = 1;
};

/// A piece of a text that was read, with the place where it starts. Nothing is converted: whether
/// `5` is a number is up to whoever expects one, and quotes make anything a text.
struct TextNode {
  enum class Kind : uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  bool quoted = false;  ///< a scalar in quotes or in a block
  Mark at;
  std::string text;             ///< of a scalar
  std::vector<TextNode> items;  ///< of a list; of a map key, value, key, value ...

  bool is(Kind other) const { return kind == other; }
};

}  // namespace opmux::config
