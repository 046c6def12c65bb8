#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "tune/race/noise.hpp"
#include "tune/tuning_row.hpp"
#include "tuner/crossovers.hpp"

namespace opmux::tuner {

/// An implementation compared with the baseline of a race.
struct Comparison {
  tune::Build implementation;
  double log_ratio = 0, low = 0, high = 0;  ///< as in TuningRow
  uint32_t rounds = 0;

  bool operator==(const Comparison&) const = default;
};

/// The result of one race: the implementations that can run one call, compared with the one that is
/// first by score.
struct MeasuredPoint {
  tune::Build baseline;
  std::string winner;  ///< id of an implementation, without the operator
  std::vector<Comparison> comparisons;
  tune::Rigor rigor = tune::Rigor::quick;
  uint32_t day = 0;
  uint32_t dropped = 0;                               ///< unused rounds of a race without time left
  tune::race::Noise noise = tune::race::Noise::none;  ///< the cause of most of them

  /// Whether other implementations raced, but no round was quiet enough to compare one of them.
  bool is_lost() const { return comparisons.empty() && dropped > 0; }
  RaceOutcome outcome() const { return {baseline.id, winner}; }
  bool operator==(const MeasuredPoint&) const = default;
};

/// A point as lines of text, as the workbench and a worker store it.
std::string text_of(const MeasuredPoint& point);
/// Reads text_of(). Fails with "tune.point".
Result<MeasuredPoint> read_point(std::string_view text);

/// The parts of a stretch in which the implementations were compared, and those in which they were
/// not because no round was quiet enough. Values between two parts belong to the latter.
std::vector<Stretch> parts_of(const Stretch& whole, const std::map<int64_t, MeasuredPoint>& points);

/// The rows for a range in which these points were measured. An interval of a row contains those of
/// all points, so that its verdict holds at each of them. An implementation that was not compared
/// at a point has no row, and there are no rows if the points have different baselines.
std::vector<tune::TuningRow> rows_of(const tune::Cell& cell, const tune::Range& range,
                                     std::span<const MeasuredPoint> points);

/// Adds what a second race in a new process measured at one of the points. A row that it gives the
/// same verdict to is confirmed. In either case the interval of the row contains both.
void add_confirmation(std::vector<tune::TuningRow>& rows, const MeasuredPoint& again);

/// The row by which the baseline of these rows, which are of one range, is replaced: the fastest of
/// those with the verdict `faster`. Null if there is none.
const tune::TuningRow* winning_row(std::span<const tune::TuningRow> rows);

}  // namespace opmux::tuner
