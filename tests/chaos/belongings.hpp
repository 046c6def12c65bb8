#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace opmux::test {

inline size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

inline size_t resident_kb() {
  std::ifstream pages("/proc/self/statm");
  size_t whole = 0, resident = 0;
  pages >> whole >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// Resources of a process that could leak.
struct Belongings {
  size_t threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd"),
         memory_kb = resident_kb();

  static Belongings none() { return {0, 0, 0}; }
  void keep_most(const Belongings& other) {
    threads = std::max(threads, other.threads);
    files = std::max(files, other.files);
    memory_kb = std::max(memory_kb, other.memory_kb);
  }
};

/// Processor seconds over all processors: used by this process and its children, and idle.
struct ProcessorTime {
  double used = 0, idle = 0;

  static ProcessorTime now() {
    ProcessorTime time;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage usage{};
      getrusage(who, &usage);
      for (const timeval& each : {usage.ru_utime, usage.ru_stime})
        time.used += static_cast<double>(each.tv_sec) + static_cast<double>(each.tv_usec) / 1e6;
    }
    std::ifstream all("/proc/stat");
    std::string word;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    all >> word >> user >> nice >> system >> idle >> waiting;
    time.idle = (idle + waiting) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return time;
  }
  /// The share of the available processor time that this process used since then.
  double share_since(const ProcessorTime& before) const {
    const double used_since = used - before.used, idle_since = idle - before.idle;
    return used_since / std::max(used_since + idle_since, 1e-9);
  }
};

}  // namespace opmux::test
