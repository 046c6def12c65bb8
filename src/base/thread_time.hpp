#pragma once

#include <time.h>

#include <cstdint>

namespace opmux::base {

/// CPU time used by the calling thread; independent of the load from other threads.
inline uint64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace opmux::base
