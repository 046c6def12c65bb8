#include "regret/repeats.hpp"

#include <algorithm>
#include <map>

#include "regret/percent.hpp"

namespace opmux::bench {
namespace {

constexpr double kMostDiffering = 0.02;
constexpr double kSteadyGap = 0.03;  ///< from here on no tuning may choose differently

std::map<std::string, size_t> counts_of(const std::vector<std::string>& choices) {
  std::map<std::string, size_t> counts;
  for (const std::string& choice : choices) ++counts[choice];
  return counts;
}

double share_of(const RepeatSummary& summary) {
  if (summary.tunings == 0) return 0;
  return static_cast<double>(summary.differing) / static_cast<double>(summary.tunings);
}

}  // namespace

size_t differing(const std::vector<std::string>& choices) {
  size_t most = 0;
  for (const auto& [choice, count] : counts_of(choices)) most = std::max(most, count);
  return choices.size() - most;
}

RepeatSummary summary_of(const std::vector<RepeatedCell>& cells) {
  RepeatSummary summary;
  summary.cells = cells.size();
  for (const RepeatedCell& cell : cells) {
    summary.tunings += cell.choices.size();
    const size_t others = differing(cell.choices);
    summary.differing += others;
    if (others > 0 && cell.gap >= kSteadyGap) summary.flipping.push_back(cell.name);
  }
  return summary;
}

std::string line_of(const RepeatedCell& cell) {
  std::string line = cell.name + ": gap " + percent(cell.gap) + ";";
  for (const auto& [choice, count] : counts_of(cell.choices))
    line += " " + choice + " " + std::to_string(count) + " times";
  return line;
}

std::string text_of(const RepeatSummary& summary) {
  return std::to_string(summary.tunings) + " tunings of " + std::to_string(summary.cells) +
         " cells; " + std::to_string(summary.differing) +
         " chose another implementation than most of their cell, " + percent(share_of(summary)) +
         "\ncells with a gap of 3 % or more in which choices differ: " +
         std::to_string(summary.flipping.size()) + "\n";
}

std::vector<std::string> misses(const RepeatSummary& summary, double slack) {
  std::vector<std::string> missed;
  if (summary.tunings == 0) missed.emplace_back("no cell was tuned");
  if (share_of(summary) > kMostDiffering * slack) {
    missed.push_back(percent(share_of(summary)) + " of the choices differ, limit " +
                     percent(kMostDiffering * slack));
  }
  for (const std::string& name : summary.flipping) missed.push_back("choices of " + name);
  return missed;
}

}  // namespace opmux::bench
