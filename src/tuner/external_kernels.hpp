#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "tune/tuning_row.hpp"
#include "tuner/measured_point.hpp"

namespace opmux::tuner {

/// A kernel that an engine in Python runs itself, such as "linear/vllm.native". opmux measures it
/// and never calls it.
struct ExternalKernel {
  std::string op;
  tune::Build build;

  bool operator==(const ExternalKernel&) const = default;
};

/// A race of an external kernel against an implementation of opmux, for one call.
struct ExternalRace {
  ExternalKernel kernel;
  tune::Build against;
  std::vector<std::string> words;  ///< of the call: "x=bf16", "rows=4", "N=2048"
  uint32_t threads = 1;
  uint64_t most_time_ns = 0;
  uint64_t cold_bytes = 0;  ///< as CopyLimits::cold_bytes
};

/// `python -m opmux.tune_worker` in another environment, which has kernels that opmux does not run,
/// and races them. The destructor ends the process. Move-only; one thread.
class ExternalKernels {
 public:
  struct Deadlines {
    std::chrono::milliseconds start{120'000};   ///< for importing the engine
    std::chrono::milliseconds answer{120'000};  ///< for one race with its preparation
  };

  /// Starts the program, which needs seconds to import the engine. Fails with "tune.python" if it
  /// cannot be started.
  static Result<ExternalKernels> start(const std::string& python, const Deadlines& deadlines);
  static Result<ExternalKernels> start(const std::string& python) {
    return start(python, Deadlines());
  }

  /// Waits until the program has named its kernels. Fails with "tune.python".
  Result<std::vector<ExternalKernel>> kernels();
  /// Fails with "tune.python" if the program could not race, with its words. After a failure of the
  /// program itself every race fails.
  Result<MeasuredPoint> race(const ExternalRace& asked);

 private:
  class Process;
  ExternalKernels() = default;

  struct End {
    void operator()(Process* process) const;
  };
  std::unique_ptr<Process, End> process_;
  std::string python_;
  Deadlines deadlines_;
};

}  // namespace opmux::tuner
