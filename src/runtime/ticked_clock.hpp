#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "base/process.hpp"

namespace opmux::runtime {

/// A clock that a program with a time of its own pushes on: between two ticks as much passes as
/// between their times, at least. Thread-safe.
class TickedClock final : public base::Clock {
 public:
  explicit TickedClock(const base::Clock& clock) : clock_(clock) {}

  uint64_t now_ns() const override {
    return clock_.now_ns() + ahead_ns_.load(std::memory_order_relaxed);
  }
  /// The first one says where the program's time starts. If it is this clock's, it may be ahead.
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
  uint64_t last_tick_ns_ = 0, last_ns_ = 0;  ///< the same moment, in both times
  std::atomic<uint64_t> ahead_ns_{0};
};

}  // namespace opmux::runtime
