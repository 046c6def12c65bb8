#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "registry/dependencies.hpp"
#include "registry/record.hpp"

namespace opmux::tune {

/// A measured time of one implementation for arguments like these.
struct TuningRow {
  double nanoseconds = 0;
  double sigma = 0;  ///< standard deviation of the measurement
};

/// Where a decision finds measured times. Implementations are immutable or thread-safe.
class TuningView {
 public:
  virtual ~TuningView() = default;
  virtual std::optional<TuningRow> row(const registry::ImplementationRecord& implementation,
                                       const registry::Signature& signature) const = 0;
  /// What the rows of this operator look at.
  virtual registry::Dependencies dependencies(const registry::Schema& schema) const = 0;
};

/// Whether `other` is faster than the score winner by more than the noise: max(3 %, 2 sigma).
bool clearly_faster(const TuningRow& other, const TuningRow& winner);

/// Who runs, of the candidates of the best tier in order of score: the first, unless it has a row
/// and another one's row is clearly faster; then the fastest of those. Index into `rows`.
size_t fastest(std::span<const std::optional<TuningRow>> rows);

}  // namespace opmux::tune
