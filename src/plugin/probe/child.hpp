#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/probe/probe_report.hpp"

namespace opmux::plugin {

/// The program to start, with its arguments, environment and descriptor.
struct ChildCommand {
  std::string program;
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< complete environment
  int given = -1;                        ///< becomes protocol::kPluginDescriptor in the child
  /// Memory limit in bytes; a child that hangs near it counts as memory_full.
  unsigned long most_data = 0;
};

struct ChildReport {
  std::string text;  ///< at most kLongestVerdict bytes
  Ending ending;
};

/// Starts a program in a new process group with posix_spawn. Reads its report from
/// protocol::kReportDescriptor until it ends or the deadline passes, then kills the group and reaps
/// the child. The standard streams of the child are /dev/null. Fails with "probe.spawn".
Result<ChildReport> run_child(const ChildCommand& command, std::chrono::milliseconds deadline);

}  // namespace opmux::plugin
