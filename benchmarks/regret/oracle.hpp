#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <opmux/opmux.hpp>

#include "tune/race/paired_ratios.hpp"
#include "tune/race/race.hpp"
#include "tuner/measure/cell_spec.hpp"

namespace opmux::bench {

struct OracleOptions {
  uint32_t rounds = 200;     ///< accepted rounds
  double most_seconds = 60;  ///< of one cell; fewer rounds are accepted if this is over
  uint64_t cold_bytes = 0;   ///< CopyLimits::cold_bytes
};

/// The times of all implementations of one call, measured without the shortcuts of a tuning run: an
/// implementation is left out only if it is surely 1.5 times as slow as the fastest.
class Oracle {
 public:
  /// Times the implementations in random order, once in each round. `ids` are without the operator.
  /// `value` is that of the dimension that varies. Fails if none can run.
  static Result<Oracle> measure(Runtime& runtime, const tuner::CellPlan& plan, int64_t value,
                                const std::vector<std::string>& ids, const OracleOptions& options,
                                const tune::race::Environment& environment);

  /// The fastest by the centers of the ratios.
  const std::string& best() const { return ids_[best_]; }
  /// log(time of one / time of the other). Zero and certain for one that is compared with itself.
  tune::race::Interval ratio(const std::string& id, const std::string& other) const;
  bool has(const std::string& id) const;
  /// How much longer the second best implementation takes, surely: 0.03 is 3 %. Infinite if there
  /// is only one.
  double gap() const;

  size_t implementations() const { return ids_.size(); }
  size_t rounds() const { return ratios_.rounds(); }
  uint32_t dropped() const { return dropped_; }

 private:
  explicit Oracle(std::vector<std::string> ids) : ids_(std::move(ids)), ratios_(ids_.size()) {}
  size_t place_of(const std::string& id) const;
  void find_best();

  std::vector<std::string> ids_;
  tune::race::PairedRatios ratios_;
  size_t best_ = 0;
  uint32_t dropped_ = 0;
};

}  // namespace opmux::bench
