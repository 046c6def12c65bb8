#pragma once

#include <string>
#include <string_view>

#include "tune/bundle.hpp"

namespace opmux::tuner {

/// The rows of a set as an SVG picture for light and dark pages: one panel for each cell in which a
/// dimension varies. It shows how many times as fast as the baseline each implementation is over
/// the dimension, the intervals as bands, and where the fastest one changes. If `op` is not empty,
/// only panels of that operator. Empty if there is nothing to draw.
std::string picture_of(const tune::TuningSet& set, std::string_view op);

}  // namespace opmux::tuner
