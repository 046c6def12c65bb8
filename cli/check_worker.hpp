#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/check_report.hpp"

namespace opmux::cli {

/// What the process that loads a plugin and runs its kernels is told. It is this program again.
struct WorkerOrder {
  std::string folder;  ///< that holds the plugin and nothing else
  std::string id;      ///< implementation to verify; empty: say what there is
  uint64_t cases = 1000, seed = 1;
};

/// Does as it is told and writes what it found to the descriptor of its report. An exit code.
int work(const WorkerOrder& order);

/// How a worker ended, and what it wrote.
struct WorkerAnswer {
  Json found;              ///< null if it did not come to that
  std::string code, text;  ///< "crash", "hang", "exit", "spawn": why not
};

/// Runs a worker to its end or the deadline.
WorkerAnswer ask_worker(const WorkerOrder& order, std::chrono::seconds deadline);

}  // namespace opmux::cli
