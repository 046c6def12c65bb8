#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opmux::probe {

/// The state of a process that a plugin must not change: files, folder, signals, environment,
/// modes.
struct ProcessState {
  std::map<int, std::pair<dev_t, ino_t>> files;
  std::string folder;
  mode_t file_mask = 0;
  std::vector<std::string> environment;
  std::string locale;
  std::array<uint32_t, 3> floating_point{};  ///< rounding, trapping, flushing to zero
  /// Blocked signals of the calling thread.
  std::array<bool, 65> blocked{};
  std::array<std::pair<const void*, int>, 65> handlers{};  ///< function and flags per signal
  std::terminate_handler on_terminate = nullptr;
  std::new_handler on_no_memory = nullptr;
  std::array<long, 3> timers{};  ///< remaining microseconds
  std::array<std::pair<rlim_t, rlim_t>, RLIM_NLIMITS> limits{};
  size_t threads = 0;
};

/// The current state of this process.
ProcessState look();

/// One difference between two states.
struct Difference {
  std::string_view code;  ///< "probe.files", "probe.folder" ...
  std::string text;
};

/// The changes between two states. Fewer threads and additional files do not count.
std::vector<Difference> differences(const ProcessState& before, const ProcessState& after);

}  // namespace opmux::probe
