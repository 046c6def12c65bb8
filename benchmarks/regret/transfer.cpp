#include "regret/transfer.hpp"

#include <algorithm>
#include <cmath>

#include "regret/percent.hpp"

namespace opmux::bench {
namespace {

constexpr double kP95Limit = 0.01;

/// The value that this share of the sorted values does not exceed.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1];
}

}  // namespace

TransferSummary summary_of(const std::vector<TransferPoint>& points) {
  TransferSummary summary;
  std::vector<double> regrets;
  for (const TransferPoint& point : points) regrets.push_back(point.regret);
  summary.points = regrets.size();
  if (regrets.empty()) return summary;
  std::ranges::sort(regrets);
  summary.median = quantile(regrets, 0.5);
  summary.p95 = quantile(regrets, 0.95);
  summary.worst = regrets.back();
  return summary;
}

std::string line_of(const TransferPoint& point) {
  return point.name + ": " + point.chosen + " +" + percent(point.regret) + ", best " + point.best;
}

std::string text_of(const TransferSummary& summary) {
  return std::to_string(summary.points) + " sizes between measured ones; regret: median " +
         percent(summary.median) + ", p95 " + percent(summary.p95) + ", worst " +
         percent(summary.worst) + "\n";
}

std::vector<std::string> misses(const TransferSummary& summary, double slack) {
  std::vector<std::string> missed;
  if (summary.points == 0) missed.emplace_back("no size was measured");
  if (summary.p95 > kP95Limit * slack) {
    missed.push_back("p95 of the regret between measured sizes " + percent(summary.p95) +
                     ", limit " + percent(kP95Limit * slack));
  }
  return missed;
}

}  // namespace opmux::bench
