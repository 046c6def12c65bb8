#include "tune/tuning_view.hpp"

#include <algorithm>

namespace opmux::tune {

bool clearly_faster(const TuningRow& other, const TuningRow& winner) {
  const double noise = std::max(0.03 * winner.nanoseconds, 2 * std::max(other.sigma, winner.sigma));
  return winner.nanoseconds - other.nanoseconds > noise;
}

size_t fastest(std::span<const std::optional<TuningRow>> rows) {
  if (rows.empty() || !rows[0]) return 0;
  size_t best = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (!rows[i] || !clearly_faster(*rows[i], *rows[0])) continue;
    if (best == 0 || rows[i]->nanoseconds < rows[best]->nanoseconds) best = i;
  }
  return best;
}

}  // namespace opmux::tune
