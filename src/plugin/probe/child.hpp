#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/probe/child_watch.hpp"
#include "plugin/probe/probe_report.hpp"

namespace opmux::plugin {

/// The program to start, with its arguments, environment and descriptor.
struct ChildCommand {
  std::string program;
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< complete environment
  /// A file that the child may read as protocol::kPluginDescriptor; -1: none. The child gets a
  /// separate open file, so that it cannot change the position, flags and locks of this one.
  int given = -1;
  /// Further files, from protocol::kLibraryDescriptor on.
  std::vector<int> libraries = {};
  ChildLimits limits = {};
  /// Text that the child reads from protocol::kOrderDescriptor, at most 512 bytes; empty: none.
  std::string order = {};
};

struct ChildReport {
  std::string text;  ///< at most kLongestVerdict bytes
  Ending ending;
};

/// Starts a program in a new session with posix_spawn. Reads its report from
/// protocol::kReportDescriptor until it ends, the deadline passes or it exceeds a limit, then kills
/// its process group and reaps it. The standard streams of the child are /dev/null. This process is
/// undumpable meanwhile. Fails with "probe.spawn".
Result<ChildReport> run_child(const ChildCommand& command, std::chrono::milliseconds deadline);

}  // namespace opmux::plugin
