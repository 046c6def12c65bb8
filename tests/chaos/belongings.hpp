#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <thread>

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

/// What a process could have more and more of.
struct Belongings {
  size_t threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd"),
         memory_kb = resident_kb();
};

/// How much of all processors this process and its children had, out of the time that passed.
inline double processor_share(std::chrono::nanoseconds passed) {
  double used = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      used += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  }
  return used / std::chrono::duration<double>(passed).count() /
         static_cast<double>(std::thread::hardware_concurrency());
}

}  // namespace opmux::test
