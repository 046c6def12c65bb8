#pragma once

#include <string_view>
#include <utility>

/// What was measured where a limit is not reached yet; docs/dev/performance.md says what stands in
/// the way. `--kept` compares with these instead of the limits, so that nothing gets worse unseen;
/// a row goes when its limit is reached.
namespace opmux::bench {

inline constexpr std::pair<std::string_view, double> kReached[] = {
    {"bound plan, run_unchecked on a prepared frame", 1.8},
    {"bound plan, checked", 5.0},
    {"handle, 3 tensors x 2 dims", 6.2},
    {"handle, 3 tensors x 4 dims", 7.6},
    {"handle, walking 300 operators", 13.9},
    {"handle, after another shape of the plan", 17.5},
    {"c10's unboxed no-op against the slowest of those", 0.57},
    {"a shape never seen, of a known class (16 questions)", 65},
    {"p99.9 of 16 calls, 1,000 publications a second", 4},
};

}  // namespace opmux::bench
