#pragma once

#include <memory>
#include <optional>
#include <span>

#include "registry/record.hpp"
#include "tune/verdict.hpp"

namespace opmux::tune {

class RowIndex;

/// The measured speed of one implementation for one class of arguments: log(its time / time of a
/// baseline) and the bounds of its interval. All speeds of a class have the same baseline, whose
/// speed is {0, 0, 0}.
struct MeasuredSpeed {
  double log_ratio = 0, low = 0, high = 0;
};

/// The measured rows of all operators. Derived classes must be thread-safe.
class TuningView {
 public:
  virtual ~TuningView() = default;
  /// The rows of an operator that hold for its implementations; null if no bundle has rows of it.
  /// Called when the operator is first used, and may read files.
  virtual std::shared_ptr<const RowIndex> rows_of(const registry::OperatorRecord& op) const = 0;
  /// Logs the problems that rows_of() found, which is called with locks held. Call it without any.
  virtual void log_problems() const {}
};

/// Compares two speeds of one class. Unless one of them is the baseline, its bounds are further
/// apart than those of a race between the two would be.
Verdict compare(const MeasuredSpeed& one, const MeasuredSpeed& other);

/// Returns the index of the winner among the candidates of the best tier, which are in order of
/// score: the first one, unless others are `faster` than it. Of those, the one with the highest
/// score than which none is `faster`. A candidate without a speed is never preferred, and a first
/// candidate without one is never replaced.
size_t fastest(std::span<const std::optional<MeasuredSpeed>> speeds);

}  // namespace opmux::tune
