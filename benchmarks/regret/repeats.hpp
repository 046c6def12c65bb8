#pragma once

#include <string>
#include <vector>

namespace opmux::bench {

/// The choices of one cell after several fresh tunings.
struct RepeatedCell {
  std::string name = {};
  std::vector<std::string> choices = {};  ///< one for each tuning
  /// How much longer the second best implementation takes, surely: 0.03 is 3 %.
  double gap = 0;
};

/// How often tunings of the same cells agree.
struct RepeatSummary {
  size_t cells = 0, tunings = 0;  ///< tunings of all cells together
  size_t differing = 0;           ///< tunings with another choice than most of their cell
  /// Cells with a gap of 3 % or more in which choices differ.
  std::vector<std::string> flipping = {};
};

/// The number of choices that differ from the most frequent one.
size_t differing(const std::vector<std::string>& choices);
RepeatSummary summary_of(const std::vector<RepeatedCell>& cells);
std::string line_of(const RepeatedCell& cell);
std::string text_of(const RepeatSummary& summary);
/// The limits that a summary misses, as sentences; `slack` multiplies the share that may differ.
std::vector<std::string> misses(const RepeatSummary& summary, double slack);

}  // namespace opmux::bench
