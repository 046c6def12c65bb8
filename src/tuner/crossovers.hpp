#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace opmux::tuner {

/// Which implementation won at one value of the dimension that varies, and over which baseline.
struct RaceOutcome {
  std::string baseline, winner;

  /// True if the choice by score stays.
  bool keeps() const { return baseline == winner; }
  bool operator==(const RaceOutcome&) const = default;
};

/// Neighbouring values with the same outcome.
struct Stretch {
  int64_t first = 0, last = 0;    ///< both belong to it
  std::vector<int64_t> measured;  ///< values in it that were measured, in order
  RaceOutcome outcome;            ///< of most of it, if stretches were joined

  bool operator==(const Stretch&) const = default;
};

struct CrossoverOptions {
  size_t most_thresholds = 8;  ///< boundaries between stretches
  size_t most_values = 64;     ///< that are measured
};

/// The stretches of one family of calls, in order.
struct Crossovers {
  std::vector<Stretch> stretches;
  size_t checked = 0;    ///< random values inside of stretches that were measured
  size_t disagreed = 0;  ///< of these, values with another outcome than their stretch
  /// False if the search was ended early. Values between two outcomes are then in no stretch.
  bool complete = true;
};

/// Finds where the winner changes between `first` and `last`. Measures the powers of two, then
/// halves the gaps between values with different outcomes until a gap is at most a sixteenth of
/// its lower end. Then measures one random value inside of each stretch, and searches around it if
/// its outcome differs. Values of a gap belong to the side on which the choice by score stays.
/// If there are too many boundaries, the narrowest stretches are joined with a neighbour.
///
/// `measure` returns nullopt to end the search. `random` returns 64 random bits.
Crossovers find_crossovers(int64_t first, int64_t last,
                           const std::function<std::optional<RaceOutcome>(int64_t)>& measure,
                           const std::function<uint64_t()>& random,
                           const CrossoverOptions& options = {});

}  // namespace opmux::tuner
