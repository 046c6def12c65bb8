#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/opmux.hpp>

#include "base/system/clock.hpp"
#include "regret/oracle.hpp"
#include "tune/race/system_noise.hpp"
#include "tuner/measure/cell_race.hpp"
#include "tuner/measure/tuning_run.hpp"

namespace opmux::bench {

/// A folder for one measurement; removed by the destructor.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  std::string at(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Tunes cells as `opmux tune run` does, without the second race in a new process, and asks
/// runtimes which implementation they choose. All functions throw std::exception if something
/// cannot be measured.
class CellTuner {
 public:
  CellTuner(uint32_t threads, const OracleOptions& oracle);

  tuner::CellPlan plan_of(const tuner::CellSpec& spec);
  tuner::MeasuredCell tune(const tuner::CellSpec& spec);
  /// A new runtime that reads the rows of this cell from a bundle; without rows if there are none.
  Runtime runtime_with(const tuner::MeasuredCell& tuned) const;

  /// The implementation, without "op/", that a call with this value of the varying dimension runs
  /// in a runtime without rows.
  std::string untuned_choice(const tuner::CellPlan& plan, int64_t value);
  /// The same in a runtime of runtime_with().
  static std::string choice(Runtime& runtime, const tuner::CellPlan& plan, int64_t value);

  /// The times of all implementations that accept the call, without those that gave wrong results.
  Oracle ask_oracle(const tuner::CellPlan& plan, const tuner::MeasuredCell& tuned, int64_t value);

 private:
  std::vector<std::string> contestants(const tuner::CellPlan& plan,
                                       const tuner::MeasuredCell& tuned, int64_t value);

  const uint32_t threads_;
  base::SteadyClock clock_;
  std::mt19937_64 order_{1};
  Runtime runtime_;
  tuner::BuildFinder builds_;
  tune::race::SystemNoise noise_;
  tune::race::Environment environment_;
  tuner::RunOptions run_;
  OracleOptions oracle_;
};

/// The range that contains a value; null if the run ended before it reached the value.
const tuner::MeasuredRange* range_with(const tuner::MeasuredCell& tuned, int64_t value);
/// True if the rows of a range say for each implementation whether it is faster than the first.
bool has_verdict(const tuner::MeasuredRange& range);
/// The implementation that the rows of a range lead to.
std::string expected_choice(const tuner::MeasuredRange& range);

}  // namespace opmux::bench
