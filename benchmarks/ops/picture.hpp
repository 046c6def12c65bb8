#pragma once

#include <string>

namespace opmux::bench {

/// Draws a report (as to_json writes it, or merged with others' results) as SVG: one panel per
/// operator, time over tokens, both logarithmic, one line per implementation.
std::string picture_of(const std::string& json);

}  // namespace opmux::bench
