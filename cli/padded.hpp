#pragma once

#include <algorithm>
#include <string>

namespace opmux::cli {

/// Pads the text with spaces on the right.
inline std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace opmux::cli
