#pragma once

#include <string>

namespace opmux::bench {

/// Draws a report of to_json() or tools/bench_vs_torch as SVG: one panel per operator with time
/// over tokens on logarithmic axes, and one line per implementation.
std::string picture_of(const std::string& json);

}  // namespace opmux::bench
