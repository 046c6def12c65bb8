#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// A source of time that tests can replace.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds since an arbitrary fixed moment; monotonic.
  virtual uint64_t now_ns() const = 0;
};

class SteadyClock final : public Clock {
 public:
  uint64_t now_ns() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
};

/// True if the text is a valid calendar date such as "2027-02-01".
bool is_date(std::string_view text);

/// Today in UTC.
std::string today();

/// The first second after that day, as UTC seconds since 1970. Nullopt if the date is not valid.
std::optional<int64_t> end_of_day(std::string_view date);

/// CPU time used by the calling thread; independent of the load from other threads.
inline uint64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace opmux::base
