#pragma once

#include <algorithm>
#include <string>

namespace opmux::cli {

/// The text, with spaces behind it up to a width.
inline std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace opmux::cli
