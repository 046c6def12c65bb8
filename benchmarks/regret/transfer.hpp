#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opmux::bench {

/// A call with a size that was not measured, inside of a range that has rows.
struct TransferPoint {
  std::string name = {};  ///< "matmul f32,f32,f32 K=2048 N=2048 threads=1 eager, M=37"
  std::string chosen = {}, best = {};
  double regret = 0;  ///< how much longer the choice takes than the fastest implementation
};

/// Regret of choices at sizes between the measured ones.
struct TransferSummary {
  size_t points = 0;
  double median = 0, p95 = 0, worst = 0;
};
TransferSummary summary_of(const std::vector<TransferPoint>& points);
std::string line_of(const TransferPoint& point);
std::string text_of(const TransferSummary& summary);
/// The limits that a summary misses, as sentences; `slack` multiplies what is allowed.
std::vector<std::string> misses(const TransferSummary& summary, double slack);

}  // namespace opmux::bench
