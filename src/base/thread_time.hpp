#pragma once

#include <time.h>

#include <cstdint>

namespace opmux::base {

/// What the calling thread has had of a processor, however busy others are.
inline uint64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace opmux::base
