#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/check_report.hpp"

namespace opmux::cli {

/// The order for a worker: a child process of this program that loads a plugin and runs its
/// kernels.
struct WorkerOrder {
  std::string folder;  ///< folder that contains only the plugin
  std::string id;      ///< implementation to verify; empty: describe the plugin
  uint64_t cases = 1000, seed = 1;
};

/// Executes an order and writes the result to the report descriptor. Returns an exit code.
int work(const WorkerOrder& order);

/// The result of a worker.
struct WorkerAnswer {
  Json found;              ///< null if the worker failed
  std::string code, text;  ///< why it failed: "crash", "hang", "exit", "spawn"
};

/// Runs a worker until it ends or the deadline passes.
WorkerAnswer ask_worker(const WorkerOrder& order, std::chrono::seconds deadline);

}  // namespace opmux::cli
