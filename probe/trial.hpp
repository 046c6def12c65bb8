#pragma once

#include <string>

#include "plugin/open/library.hpp"
#include "plugin/probe/verdict.hpp"
#include "plugin/read/descriptor_reader.hpp"
#include "probe/process_state.hpp"

namespace opmux::probe {

/// Opens a plugin, queries it, initialises it, asks whether its backends are available, runs its
/// self test and shuts it down. After each stage it checks the changes to the state of this
/// process.
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
  Status start_and_test(const plugin::PluginContents& contents);
  /// Calls is_available of every backend. Its answer does not matter, because it may differ from
  /// machine to machine, nor does the state that it leaves behind.
  Status ask_backends(const plugin::PluginContents& contents);

  plugin::LibraryFile file_;
  std::string stage_;
  ProcessState before_;
  bool threads_allowed_ = false;
  plugin::Manifest manifest_;
};

}  // namespace opmux::probe
