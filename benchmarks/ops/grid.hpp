#pragma once

#include <vector>

#include "point.hpp"

namespace opmux::bench {

/// How many points an operator gets.
enum class Size : uint8_t { check, full };  ///< check: at most 8

/// Every operator over decode and prefill, hidden sizes and dtypes.
std::vector<Point> grid(Size size);

}  // namespace opmux::bench
