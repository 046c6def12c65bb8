#pragma once

#include <string>

#include "plugin/library.hpp"
#include "plugin/verdict.hpp"
#include "probe/process_state.hpp"

namespace opmux::probe {

/// Opens a plugin, asks what it brings, initialises it, runs its self test and shuts it down, and
/// looks after each step at what it did to this process.
class Trial {
 public:
  explicit Trial(plugin::LibraryFile file);

  plugin::Verdict run();

 private:
  Status steps();
  /// Says which stage begins.
  void begin(std::string_view stage);
  /// What the stage that ends left behind.
  Status left_behind();
  Status start_and_test(const opmux_plugin& functions);

  plugin::LibraryFile file_;
  std::string stage_;
  ProcessState before_;
  bool threads_allowed_ = false;
  plugin::Manifest manifest_;
};

}  // namespace opmux::probe
