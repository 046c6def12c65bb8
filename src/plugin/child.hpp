#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/probe_report.hpp"

namespace opmux::plugin {

/// What to start, and what it gets.
struct ChildCommand {
  std::string program;
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< all of it
  int given = -1;                        ///< becomes protocol::kPluginDescriptor there
  unsigned long most_data = 0;           ///< bytes; near this an ending counts as memory_full
};

struct ChildReport {
  std::string text;  ///< at most kLongestVerdict bytes
  Ending ending;
};

/// Starts a program in a process group of its own, without forking this process; reads what it
/// writes to protocol::kReportDescriptor until it ends or the time is up, then ends the whole
/// group and takes its status. Standard streams are /dev/null there. Fails with "probe.spawn".
Result<ChildReport> run_child(const ChildCommand& command, std::chrono::milliseconds deadline);

}  // namespace opmux::plugin
