#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "base/process.hpp"

namespace opmux::runtime {

/// A clock that a program with simulated time can advance. Between two ticks it advances by at
/// least the difference of their times. Thread-safe.
class TickedClock final : public base::Clock {
 public:
  explicit TickedClock(const base::Clock& clock) : clock_(clock) {}

  uint64_t now_ns() const override {
    return clock_.now_ns() + ahead_ns_.load(std::memory_order_relaxed);
  }
  /// The first tick defines the start of the program's time. A first tick that is at most an hour
  /// ahead of the real clock counts as the same time scale.
  void tick(uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    const uint64_t real = clock_.now_ns();
    if (!ticked_) {
      last_ns_ = now_ns();
      last_tick_ns_ = time_ns >= real && time_ns - real < kAnHour ? real : time_ns;
      ticked_ = true;
    }
    const uint64_t passed = time_ns > last_tick_ns_ ? time_ns - last_tick_ns_ : 0;
    last_ns_ = std::max(now_ns(), last_ns_ + passed);
    last_tick_ns_ = std::max(last_tick_ns_, time_ns);
    ahead_ns_.store(last_ns_ - std::min(real, last_ns_), std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kAnHour = 3'600'000'000'000;

  const base::Clock& clock_;
  base::ForkMutex mutex_;
  bool ticked_ = false;
  /// The time of the last tick, on the program's clock and on this one.
  uint64_t last_tick_ns_ = 0, last_ns_ = 0;
  std::atomic<uint64_t> ahead_ns_{0};
};

}  // namespace opmux::runtime
