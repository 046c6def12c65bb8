#pragma once

#include <vector>

#include "point.hpp"

namespace opmux::bench {

/// Number of points per operator: `check` has at most 8.
enum class Size : uint8_t { check, full };

/// The points of every operator: decode and prefill, several hidden sizes, f32 and bf16.
std::vector<Point> grid(Size size);

}  // namespace opmux::bench
