#include "regret/regret.hpp"

#include <algorithm>
#include <cmath>

#include "regret/percent.hpp"

namespace opmux::bench {
namespace {

using tune::race::Interval;

constexpr double kMeanLimit = 0.005, kP99Limit = 0.02, kWorstLimit = 0.03;
constexpr double kGap = 0.03;          ///< from here on a cell should have a verdict
constexpr double kVerdictShare = 0.8;  ///< of the cells with such a gap
constexpr double kSlowerLimit = 0.01;  ///< rows may cost this much
constexpr double kOneSided95 = 1.645;  ///< standard errors

}  // namespace

double regret_of(double log_ratio) { return std::expm1(std::max(log_ratio, 0.0)); }

void judge(const Oracle& oracle, RegretOfCell& cell) {
  cell.implementations = oracle.implementations();
  cell.rounds = oracle.rounds();
  cell.dropped = oracle.dropped();
  cell.best = oracle.best();
  for (const std::string& id : {cell.untuned, cell.tuned}) {
    if (!oracle.has(id)) {
      cell.problem = id + " was chosen, but did not run for the oracle";
      return;
    }
  }
  const Interval tuned = oracle.ratio(cell.tuned, cell.best);
  const Interval untuned = oracle.ratio(cell.untuned, cell.best);
  cell.tuned_regret = regret_of(tuned.center);
  cell.untuned_regret = regret_of(untuned.center);
  cell.proven_gap = std::expm1(untuned.low);
  cell.resolved = cell.tuned == cell.best || tuned.low > 0 || tuned.within(tune::kTieMargin);
  const Interval cost = oracle.ratio(cell.tuned, cell.untuned);
  cell.surely_slower = std::expm1(cost.center - kOneSided95 * cost.error);
}

RegretSummary summary_of(const std::vector<RegretOfCell>& cells) {
  RegretSummary summary;
  std::vector<double> regrets;
  for (const RegretOfCell& cell : cells) {
    if (!cell.problem.empty()) continue;
    ++summary.judged;
    if (cell.surely_slower > kSlowerLimit) summary.slower.push_back(cell.name);
    if (cell.proven_gap >= kGap) {
      ++summary.gaps;
      summary.gaps_with_verdict += cell.has_verdict ? 1 : 0;
    }
    if (!cell.has_verdict) continue;
    regrets.push_back(cell.tuned_regret);
    summary.mean += cell.tuned_regret;
    summary.untuned_mean += cell.untuned_regret;
    summary.untuned_worst = std::max(summary.untuned_worst, cell.untuned_regret);
  }
  summary.verdicts = regrets.size();
  if (regrets.empty()) return summary;
  std::ranges::sort(regrets);
  const auto count = static_cast<double>(regrets.size());
  summary.mean /= count;
  summary.untuned_mean /= count;
  summary.worst = regrets.back();
  summary.p99 = regrets[static_cast<size_t>(std::ceil(0.99 * count)) - 1];
  return summary;
}

std::string line_of(const RegretOfCell& cell) {
  if (!cell.problem.empty()) return cell.name + ": not judged: " + cell.problem;
  std::string line = cell.name + ": without rows " + cell.untuned + " +" +
                     percent(cell.untuned_regret) + ", with rows " + cell.tuned + " +" +
                     percent(cell.tuned_regret) + ", best " + cell.best;
  if (!cell.has_verdict) line += "; unclear";
  if (!cell.resolved) line += "; the oracle cannot tell them apart";
  return line + "; " + std::to_string(cell.implementations) + " implementations, " +
         std::to_string(cell.rounds) + " rounds, " + std::to_string(cell.dropped) + " dropped";
}

std::string text_of(const RegretSummary& summary) {
  return std::to_string(summary.verdicts) + " of " + std::to_string(summary.judged) +
         " cells have a verdict\nregret with rows: mean " + percent(summary.mean) + ", p99 " +
         percent(summary.p99) + ", worst " + percent(summary.worst) +
         "\nregret of the same cells without rows: mean " + percent(summary.untuned_mean) +
         ", worst " + percent(summary.untuned_worst) +
         "\ncells with a proven gap of 3 % or more: " + std::to_string(summary.gaps) +
         ", with a verdict " + std::to_string(summary.gaps_with_verdict) +
         "\ncells that rows made surely slower by more than 1 %: " +
         std::to_string(summary.slower.size()) + "\n";
}

std::vector<std::string> misses(const RegretSummary& summary, double slack) {
  std::vector<std::string> missed;
  const auto limit = [&](const char* what, double figure, double most) {
    if (figure > most * slack)
      missed.push_back(std::string(what) + " " + percent(figure) + ", limit " +
                       percent(most * slack));
  };
  if (summary.judged == 0) missed.emplace_back("no cell was judged");
  limit("mean regret", summary.mean, kMeanLimit);
  limit("p99 of the regret", summary.p99, kP99Limit);
  limit("worst regret", summary.worst, kWorstLimit);
  if (static_cast<double>(summary.gaps_with_verdict) <
      kVerdictShare / slack * static_cast<double>(summary.gaps)) {
    missed.push_back("a verdict in " + std::to_string(summary.gaps_with_verdict) + " of " +
                     std::to_string(summary.gaps) + " cells with a proven gap");
  }
  for (const std::string& name : summary.slower) missed.push_back("rows make " + name + " slower");
  return missed;
}

}  // namespace opmux::bench
