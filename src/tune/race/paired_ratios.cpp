#include "tune/race/paired_ratios.hpp"

#include <algorithm>
#include <cmath>

namespace opmux::tune::race {
namespace {

/// One in this many values is left out at each end.
constexpr size_t kTrimmed = 8;

/// The largest number of values that may lie above a bound of the median: as many of `count` coins
/// or fewer show heads with a chance of 1 in 200 or less.
size_t values_above(size_t count) {
  constexpr double kChance = 0.005;
  double exactly = std::pow(0.5, static_cast<double>(count));
  double at_most = exactly;
  for (size_t heads = 0; heads < count / 2; ++heads) {
    exactly *= static_cast<double>(count - heads) / static_cast<double>(heads + 1);
    at_most += exactly;
    if (at_most > kChance) return heads;
  }
  return 0;
}

double square(double value) { return value * value; }

}  // namespace

TrimmedMean trimmed_mean(std::span<double> values) {
  TrimmedMean result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const size_t cut = count / kTrimmed;
  const double lowest = values[cut];
  const double highest = values[count - 1 - cut];
  const std::span<const double> kept = values.subspan(cut, count - 2 * cut);
  double sum = 0;
  for (const double value : kept) sum += value;
  result.mean = sum / static_cast<double>(kept.size());
  if (count < kTrimmed) return result;

  // The error follows from the deviation of all values, with those that were left out moved to the
  // nearest one that was kept (Tukey and McLaughlin).
  const double all = static_cast<double>(count);
  const double moved = static_cast<double>(cut);
  const double mean = (sum + moved * (lowest + highest)) / all;
  double squares = moved * (square(lowest - mean) + square(highest - mean));
  for (const double value : kept) squares += square(value - mean);
  const double part = static_cast<double>(kept.size()) / all;
  result.error = std::sqrt(squares / (all - 1) / all) / part;
  result.highest = values[count - 1 - values_above(count)];
  return result;
}

double slower_errors(size_t rounds) { return 3 + 4 / static_cast<double>(rounds); }

double faster_errors(size_t rounds, size_t comparisons) {
  // The error of few rounds is itself uncertain, and each comparison is one more chance to be
  // wrong.
  const double few_rounds = 24 / static_cast<double>(rounds);
  const double many = 1 + 0.08 * std::log(static_cast<double>(std::max<size_t>(comparisons, 1)));
  return (3.8 + few_rounds) * many;
}

void PairedRatios::add_round(std::span<const double> log_times) {
  log_times_.insert(log_times_.end(), log_times.begin(), log_times.end());
}

std::span<double> PairedRatios::collect(size_t candidate, size_t baseline) const {
  scratch_.clear();
  for (size_t row = 0; row < log_times_.size(); row += candidates_) {
    const double ratio = log_times_[row + candidate] - log_times_[row + baseline];
    if (!std::isnan(ratio)) scratch_.push_back(ratio);
  }
  return scratch_;
}

double PairedRatios::center(size_t candidate, size_t baseline) const {
  return trimmed_mean(collect(candidate, baseline)).mean;
}

Interval PairedRatios::ratio(size_t candidate, size_t baseline) const {
  const std::span<double> ratios = collect(candidate, baseline);
  const TrimmedMean trimmed = trimmed_mean(ratios);
  Interval interval;
  interval.rounds = ratios.size();
  interval.center = trimmed.mean;
  interval.error = trimmed.error;
  if (ratios.size() < kTrimmed) return interval;
  interval.low = trimmed.mean - slower_errors(ratios.size()) * trimmed.error;
  // The deviation of a processor with two speeds may be tiny by chance, if most rounds saw the same
  // speeds. The bound of the median does not depend on it.
  interval.high =
      std::max(trimmed.highest,
               trimmed.mean + faster_errors(ratios.size(), candidates_ - 1) * trimmed.error);
  return interval;
}

}  // namespace opmux::tune::race
