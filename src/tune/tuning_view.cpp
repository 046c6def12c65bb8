#include "tune/tuning_view.hpp"

#include <algorithm>

namespace opmux::tune {

Verdict compare(const MeasuredSpeed& one, const MeasuredSpeed& other) {
  return verdict_of(one.log_ratio - other.log_ratio, one.low - other.high, one.high - other.low);
}

size_t fastest(std::span<const std::optional<MeasuredSpeed>> speeds) {
  if (speeds.empty() || !speeds[0]) return 0;
  const auto is_faster = [&](size_t one, size_t other) {
    return speeds[one] && compare(*speeds[one], *speeds[other]) == Verdict::faster;
  };
  size_t best = 0;
  for (size_t i = 1; i < speeds.size(); ++i) {
    if (is_faster(i, 0) && (best == 0 || speeds[i]->log_ratio < speeds[best]->log_ratio)) best = i;
  }
  for (size_t i = 1; i < best; ++i) {
    if (is_faster(i, 0) && !is_faster(best, i)) return i;
  }
  return best;
}

}  // namespace opmux::tune
