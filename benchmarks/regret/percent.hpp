#pragma once

#include <cstdio>
#include <string>

namespace opmux::bench {

/// "1.25 %" of 0.0125.
inline std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * part);
  return text;
}

}  // namespace opmux::bench
