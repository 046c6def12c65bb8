#pragma once

#include <string>
#include <vector>

#include "regret/oracle.hpp"
#include "tune/verdict.hpp"

namespace opmux::bench {

/// The choices of one cell with and without rows, judged by the oracle. Regret is how much longer a
/// choice takes than the fastest implementation: 0.02 is 2 %.
struct RegretOfCell {
  std::string name = {};     ///< "matmul f32,f32,f32 K=2048 M=16 N=2048 threads=1 eager"
  std::string untuned = {};  ///< the implementation that runs without rows
  std::string tuned = {};    ///< the implementation that runs with them
  std::string best = {};     ///< the fastest for the oracle
  std::string problem = {};  ///< why the cell was not judged; else empty
  /// False if the rows of the cell leave open whether another implementation is faster.
  bool has_verdict = false;
  double tuned_regret = 0, untuned_regret = 0;
  /// The regret without rows is at least this, surely; negative if it may be none.
  double proven_gap = 0;
  /// True if the oracle can tell whether the tuned choice is the best, or as fast within 1 %.
  bool resolved = true;
  /// The tuned choice takes at least this much longer than the untuned one, with 95 % certainty.
  double surely_slower = 0;
  size_t implementations = 0, rounds = 0, dropped = 0;
};

/// The regret of a choice whose log(its time / time of the fastest) is this; at least 0.
double regret_of(double log_ratio);

/// Fills in everything that follows from the oracle. `untuned` and `tuned` are set.
void judge(const Oracle& oracle, RegretOfCell& cell);

/// The figures of all cells.
struct RegretSummary {
  size_t judged = 0;                    ///< cells that the oracle measured
  size_t verdicts = 0;                  ///< of these, cells with a verdict
  double mean = 0, p99 = 0, worst = 0;  ///< regret of the tuned choices of cells with a verdict
  double untuned_mean = 0, untuned_worst = 0;  ///< of the same cells without rows
  size_t gaps = 0;  ///< cells in which the oracle proves a gap of 3 % or more without rows
  size_t gaps_with_verdict = 0;
  std::vector<std::string> slower;  ///< cells in which rows surely cost more than 1 %
};
RegretSummary summary_of(const std::vector<RegretOfCell>& cells);

/// One line about a cell.
std::string line_of(const RegretOfCell& cell);
/// The summary as lines of text.
std::string text_of(const RegretSummary& summary);
/// The limits that a summary misses, as sentences; `slack` multiplies what is allowed.
std::vector<std::string> misses(const RegretSummary& summary, double slack);

}  // namespace opmux::bench
