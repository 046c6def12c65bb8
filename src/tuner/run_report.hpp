#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tune/bundle.hpp"
#include "tune/race/noise.hpp"

namespace opmux::tuner {

/// A range of a measured cell, and the rows for it.
struct MeasuredRange {
  tune::Range range;
  tune::Build baseline;  ///< the implementation that is first by score
  std::vector<tune::TuningRow> rows;
  uint32_t lost = 0;  ///< races without a comparison, because every round was disturbed
  tune::race::Noise noise = tune::race::Noise::none;  ///< cause of most disturbances
};

/// A range of a measured cell in which a kernel that opmux does not run was compared with the
/// implementation that opmux runs there.
struct ExternalRange {
  tune::Range range;
  std::string kernel;                 ///< "vllm.native"
  std::string against;                ///< "onednn.dense"
  std::vector<tune::TuningRow> rows;  ///< one; or none if the races were disturbed
};

/// Everything that was measured in one cell.
struct MeasuredCell {
  std::string op;
  uint64_t schema_hash = 0;
  tune::Cell cell;
  std::vector<MeasuredRange> ranges;
  std::vector<ExternalRange> externals;
  std::vector<std::string> notes;     ///< "reference.scalar was left out: ..."
  size_t races = 0;                   ///< made now
  size_t reused = 0;                  ///< points from the workbench
  size_t checked = 0, disagreed = 0;  ///< see Crossovers
  bool complete = true;               ///< false if it was ended before everything was measured
};

/// "matmul f32,f32,f32 K=2048 N=2048 threads=1 eager"
std::string name_of(const MeasuredCell& cell);

/// The cell with one line for each range: which implementation is first by score, which one is used
/// with the rows, and how much faster it is.
std::string report_of(const MeasuredCell& cell);

/// The rows of these cells, as measured on one machine. If two are about the same calls, those of
/// the later one are used.
tune::TuningSet rows_of(const std::vector<MeasuredCell>& cells, const tune::Machine& machine);

}  // namespace opmux::tuner
