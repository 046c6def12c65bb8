#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "registry/record.hpp"
#include "schema/dependencies.hpp"

namespace opmux::tune {

/// The measured time of one implementation for one class of arguments.
struct TuningRow {
  double nanoseconds = 0;
  double sigma = 0;  ///< standard deviation of the measurement
};

/// The measured times that a decision reads. Derived classes must be immutable or thread-safe.
class TuningView {
 public:
  virtual ~TuningView() = default;
  virtual std::optional<TuningRow> row(const registry::ImplementationRecord& implementation,
                                       const schema::Signature& signature) const = 0;
  /// The facts that distinguish the rows of this operator.
  virtual schema::Dependencies dependencies(const schema::Schema& schema) const = 0;
};

/// True if `other` is faster than the winner by score by more than the noise: max(3 %, 2 sigma).
bool clearly_faster(const TuningRow& other, const TuningRow& winner);

/// Returns the index of the winner among the candidates of the best tier, which are in order of
/// score: the first one, or the fastest of those that are clearly faster. A candidate without a row
/// is never preferred, and a first candidate without a row is never replaced.
size_t fastest(std::span<const std::optional<TuningRow>> rows);

}  // namespace opmux::tune
