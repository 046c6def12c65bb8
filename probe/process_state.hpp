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

/// Which of a process's files, folder, signals, environment and modes something may have changed.
struct ProcessState {
  std::map<int, std::pair<dev_t, ino_t>> files;
  std::string folder;
  mode_t file_mask = 0;
  std::vector<std::string> environment;
  std::string locale;
  std::array<uint32_t, 3> floating_point{};                ///< rounding, trapping, flushing to zero
  std::array<bool, 65> blocked{};                          ///< signals of the calling thread
  std::array<std::pair<const void*, int>, 65> handlers{};  ///< function and flags by signal
  std::terminate_handler on_terminate = nullptr;
  std::new_handler on_no_memory = nullptr;
  std::array<long, 3> timers{};  ///< microseconds that are left
  std::array<std::pair<rlim_t, rlim_t>, RLIM_NLIMITS> limits{};
  size_t threads = 0;
};

/// The state of this process now.
ProcessState look();

/// What differs, and a sentence about it.
struct Difference {
  std::string_view code;  ///< "probe.files", "probe.folder" ...
  std::string text;
};

/// What somebody changed between two looks; fewer threads and more files are no change.
std::vector<Difference> differences(const ProcessState& before, const ProcessState& after);

}  // namespace opmux::probe
