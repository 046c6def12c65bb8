#pragma once

#include <string>

#include "tuner/measure/tuning_run.hpp"

namespace opmux::cli {

/// The progress of a run. In a terminal it is one line on standard error that is rewritten; in
/// other cases one line on standard output for each finished cell.
class TuneProgress {
 public:
  TuneProgress();
  ~TuneProgress() { clear(); }
  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  void show(const tuner::RunProgress& progress);
  void finished(const tuner::MeasuredCell& cell);
  /// Removes the line.
  void clear();

 private:
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace opmux::cli
