#pragma once

#include <string>

#include "plugin/open/library.hpp"
#include "plugin/probe/verdict.hpp"
#include "probe/process_state.hpp"

namespace opmux::probe {

/// Opens a plugin, queries it, initialises it, runs its self test and shuts it down. After each
/// stage it checks the changes to the state of this process.
class Trial {
 public:
  explicit Trial(plugin::LibraryFile file);

  plugin::ProbeResult run();

 private:
  Status steps();
  /// Reports that a stage begins.
  void begin(std::string_view stage);
  /// The first forbidden change that the current stage made to the process.
  Status left_behind();
  Status start_and_test(const opmux_plugin& functions);

  plugin::LibraryFile file_;
  std::string stage_;
  ProcessState before_;
  bool threads_allowed_ = false;
  plugin::Manifest manifest_;
};

}  // namespace opmux::probe
