#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace opmux::tune::race {

/// A mean that ignores outliers: the eighth of the values at each end is left out.
struct TrimmedMean {
  double mean = 0;
  double error = std::numeric_limits<double>::infinity();  ///< its standard error
  /// A value that the median of the distribution, whatever its shape, exceeds with a chance of 1 in
  /// 200 or less.
  double highest = std::numeric_limits<double>::infinity();
};

/// `error` and `highest` are infinite for fewer than 8 values. Sorts the values.
TrimmedMean trimmed_mean(std::span<double> values);

/// log(time of a candidate / time of a baseline) with its bounds. Negative: the candidate is
/// faster.
///
/// The bounds differ in what they are for. A candidate is `slower` if `low` is positive; an error
/// means that another candidate of nearly the same speed is used. It is `faster` if `high` is
/// negative; an error would replace a choice that was right. So `high` is further away from the
/// center than `low`.
struct Interval {
  double center = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  double error = std::numeric_limits<double>::infinity();  ///< standard error of the center
  size_t rounds = 0;

  bool within(double margin) const { return low >= -margin && high <= margin; }
};

/// Standard errors from the center to `low`.
double slower_errors(size_t rounds);

/// Standard errors from the center to `high`, for a race that looks at its ratios after 8, 12, 16
/// and so on rounds and has this many candidates besides the baseline. Calibrated with races of
/// equal candidates: `faster` is claimed in less than 1 of 1,000. See
/// docs/dev/decisions/040-racing.md.
double faster_errors(size_t rounds, size_t comparisons);

/// The logarithms of the times of each accepted round.
class PairedRatios {
 public:
  explicit PairedRatios(size_t candidates) : candidates_(candidates) {}

  /// One logarithm per candidate; NaN for a candidate that did not run.
  void add_round(std::span<const double> log_times);
  size_t rounds() const { return log_times_.size() / candidates_; }
  /// Compares the times of two candidates over the rounds in which both ran.
  Interval ratio(size_t candidate, size_t baseline) const;
  /// The center of ratio().
  double center(size_t candidate, size_t baseline) const;

 private:
  std::span<double> collect(size_t candidate, size_t baseline) const;

  size_t candidates_;
  std::vector<double> log_times_;        // round by round
  mutable std::vector<double> scratch_;  // ratios of the pair that is looked at
};

}  // namespace opmux::tune::race
