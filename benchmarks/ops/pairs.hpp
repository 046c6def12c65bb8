#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "../rounds.hpp"

namespace opmux::bench {

/// Medians of two alternating calls.
struct Pair {
  double left_ns = 0, right_ns = 0;
  double ratio = 0;  ///< median of left / right of each pair
  int pairs = 0;
};

/// Measures `left` and `right` alternately and swaps their order after each pair. Short calls are
/// repeated within a turn, because the clock is too coarse for a single one.
inline Pair measure_pairs(const std::function<void()>& left, const std::function<void()>& right,
                          int pairs) {
  constexpr double kTurn = 20'000;
  const auto timed = [](const std::function<void()>& run, int repeats) {
    const double start = now_ns();
    for (int i = 0; i < repeats; ++i) run();
    return (now_ns() - start) / repeats;
  };
  for (int i = 0; i < 3; ++i) left(), right();
  const int repeats = 1 + static_cast<int>(kTurn / std::max(1.0, timed(right, 1)));
  std::vector<double> lefts, rights, ratios;
  for (int i = 0; i < pairs; ++i) {
    double a = 0, b = 0;
    if (i % 2 == 0) a = timed(left, repeats), b = timed(right, repeats);
    if (i % 2 != 0) b = timed(right, repeats), a = timed(left, repeats);
    lefts.push_back(a);
    rights.push_back(b);
    ratios.push_back(a / b);
  }
  return {median(lefts), median(rights), median(ratios), pairs};
}

}  // namespace opmux::bench
