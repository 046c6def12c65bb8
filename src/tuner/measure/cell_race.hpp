#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <opmux/opmux.hpp>

#include "tune/race/race.hpp"
#include "tuner/measure/cell_call.hpp"
#include "tuner/measure/cell_spec.hpp"
#include "tuner/measured_point.hpp"

namespace opmux::tuner {

/// The implementations of a call in the order in which a call tries them.
struct Candidates {
  std::vector<tune::Build> builds;  ///< the first is the baseline
  uint64_t schema_hash = 0;
};

/// Builds of implementations. Asks a separate runtime, so that the policy of the runtime that
/// measures does not change.
class BuildFinder {
 public:
  explicit BuildFinder(Runtime runtime) : runtime_(std::move(runtime)) {}

  /// The accepted candidates of a call and the builds of their libraries. Fails if no
  /// implementation accepts the call.
  Result<Candidates> candidates(const Operator& op, std::span<const opmux_arg> arguments);

 private:
  struct Known {
    std::string build;
    uint64_t schema_hash = 0;
  };
  Known find(std::string_view op, const std::string& id, std::span<const opmux_arg> arguments);

  Runtime runtime_;
  std::map<std::string, Known> known_;
};

/// Races of the implementations of one cell.
class CellRace {
 public:
  struct Limits {
    uint64_t most_time_ns = 3'000'000'000;  ///< of one race, without preparation
    std::function<bool()> stop;             ///< true: end now, without a result
  };
  /// The plan must outlive it.
  CellRace(Runtime& runtime, BuildFinder& builds, const CellPlan& plan,
           const tune::race::Environment& environment, uint64_t cold_bytes)
      : runtime_(runtime),
        builds_(builds),
        plan_(plan),
        environment_(environment),
        cold_bytes_(cold_bytes) {}

  /// The candidates at a value of the dimension that varies. Nothing runs.
  Result<Candidates> candidates(int64_t value);
  /// Compares the candidates with the reference, then races those that are right. Fails with
  /// "tune.stopped" if `stop` returned true, and with "tune.race" if there is nothing to race.
  Result<MeasuredPoint> measure(int64_t value, const Candidates& candidates, const Limits& limits);

  /// Implementations that gave wrong results or failed, with a sentence that says how.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }

 private:
  struct Entry;
  std::vector<std::unique_ptr<Entry>> entries_of(const CellCall& call, const Candidates& candidates,
                                                 const Limits& limits);
  Result<MeasuredPoint> race(const CellCall& call,
                             const std::vector<std::unique_ptr<Entry>>& entries,
                             const Limits& limits);
  void verify(int64_t value, const Candidates& candidates);
  void verify_at(const conformance::Case& c, const Candidates& candidates);
  int64_t value_to_verify(int64_t value) const;
  /// The call with this value; kept until another one is asked for.
  const conformance::Case& case_at(int64_t value);

  Runtime& runtime_;
  BuildFinder& builds_;
  const CellPlan& plan_;
  const tune::race::Environment& environment_;
  const uint64_t cold_bytes_;  ///< CopyLimits::cold_bytes
  std::map<std::string, std::string> left_out_;
  std::set<std::pair<std::string, int64_t>> verified_;  ///< implementation and value
  std::optional<std::pair<int64_t, conformance::Case>> case_;
  /// How long the reference took, and the value it took that for; 0: not known yet.
  uint64_t reference_ns_ = 0;
  int64_t reference_value_ = 1;
};

}  // namespace opmux::tuner
