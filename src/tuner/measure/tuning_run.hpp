#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "base/system/clock.hpp"
#include "tune/machine.hpp"
#include "tune/race/noise.hpp"
#include "tuner/external_kernels.hpp"
#include "tuner/measure/cell_race.hpp"
#include "tuner/measure/cell_spec.hpp"
#include "tuner/run_report.hpp"
#include "tuner/workbench.hpp"

namespace opmux::tuner {

/// The work of a run at one moment.
struct RunProgress {
  size_t done = 0, cells = 0;  ///< finished cells, and all of them
  std::string racing;          ///< "matmul f32,f32,f32 K=64 N=64 threads=1 eager, M=16"
  uint64_t left_ns = 0;        ///< of the budget
};

struct RunOptions {
  uint32_t threads = 1;
  uint64_t budget_ns = 0;   ///< of the whole run
  bool resume = false;      ///< use points of the workbench
  std::string tool;         ///< version of opmux
  uint64_t host = 0;        ///< a hash of the name of this host
  uint64_t cold_bytes = 0;  ///< twice the last-level cache
  tune::Machine machine;
};

/// Functions of the command that a run calls.
struct RunHooks {
  std::function<void(const RunProgress&)> progress;
  std::function<void(const MeasuredCell&)> finished;
  /// True if the person wants the run to end. Finished races are kept.
  std::function<bool()> stop;
  /// Races these implementations at a value again in a new process; the first is the baseline.
  /// Nullopt if that failed.
  std::function<std::optional<MeasuredPoint>(const CellSpec&, int64_t value,
                                             const std::vector<std::string>& ids)>
      confirm;
  /// The kernels of an engine that opmux does not run, asked for when the cells are measured; and
  /// the function that races one of them. May be empty.
  std::function<std::vector<ExternalKernel>()> externals = {};
  std::function<Result<MeasuredPoint>(const ExternalRace&)> race_external = {};
};

/// Measures cells one after the other until all are measured or the budget is spent.
class TuningRun {
 public:
  TuningRun(Runtime& runtime, BuildFinder& builds, Workbench& workbench, const base::Clock& clock,
            tune::race::NoiseObserver& noise, const RunOptions& options, const RunHooks& hooks);

  /// Fails with the error of a cell that cannot be measured as it was given, before anything is
  /// measured, and with "tune.workbench" if a result cannot be kept. `cells` has what was measured
  /// in either case.
  Status run(const std::vector<CellSpec>& specs, std::vector<MeasuredCell>& cells);

 private:
  struct Cell;
  Status measure_cell(Cell& cell);
  /// Nullopt if the cell ends here.
  std::optional<RaceOutcome> outcome_at(Cell& cell, int64_t value);
  std::optional<MeasuredPoint> point_at(Cell& cell, int64_t value);
  void add_ranges(Cell& cell, const Crossovers& found);
  void add_range(Cell& cell, const Stretch& stretch);
  void confirm(Cell& cell, MeasuredRange& range, const std::vector<int64_t>& measured);
  /// Measures the kernels that opmux does not run, in all cells.
  void add_externals(std::vector<Cell>& cells);
  /// Races one against the implementation that opmux runs in this range.
  void add_external(Cell& cell, const MeasuredRange& range, const ExternalKernel& kernel);
  std::optional<MeasuredPoint> external_point(Cell& cell, const ExternalRace& asked, int64_t value);
  uint64_t left_ns() const;
  bool over(const Cell& cell) const;

  Runtime& runtime_;
  BuildFinder& builds_;
  Workbench& workbench_;
  const base::Clock& clock_;
  tune::race::NoiseObserver& noise_;
  const RunOptions& options_;
  const RunHooks& hooks_;
  uint64_t start_ns_ = 0;
  RunProgress progress_;
  Status problem_;  ///< of the workbench
};

}  // namespace opmux::tuner
