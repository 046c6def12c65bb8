#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/system/files.hpp"
#include "plugin/probe/probe_report.hpp"

namespace opmux::plugin {

/// Limits of a child process that the kernel does not enforce for every user; 0: unlimited.
struct ChildLimits {
  /// Bytes of private memory. A child that hangs near it counts as memory_full.
  unsigned long data = 0;
  unsigned long shared = 0;  ///< bytes of shared memory without files
  unsigned long threads = 0;
};

/// Waits for the report and the end of one child process, compares its use of memory and threads
/// with the limits every 20 ms, and finally kills and reaps it. Not thread-safe.
class ChildWatch {
 public:
  using Clock = std::chrono::steady_clock;

  ChildWatch(pid_t child, const ChildLimits& limits, Clock::time_point deadline);

  /// Reads the report from a pipe until the end of the stream and waits for the end of the child.
  /// Stops at the deadline or as soon as the child exceeds a limit.
  void read(int pipe, std::string& text);
  /// Kills the child with its process group and reaps it. Waits at most half a second for a child
  /// that the kernel cannot end at once.
  Ending finish();

 private:
  /// Milliseconds until the next look at the limits, at most until the deadline.
  int pause() const;
  /// Whether the child may continue.
  bool within_limits();
  bool read_all(int pipe, std::string& text);
  bool has_ended();

  pid_t child_;
  base::Descriptor handle_;  ///< a pidfd; -1 on systems without them
  ChildLimits limits_;
  Clock::time_point until_;
  bool in_time_ = false;
  bool memory_full_ = false, many_threads_ = false;
};

}  // namespace opmux::plugin
