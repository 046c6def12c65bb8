#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/opmux.hpp>

namespace opmux::test {

/// The implementation that corrupted this thread's last result; null if none did.
inline thread_local const char* spoilt_by = nullptr;

/// Finds wrong results that came from an implementation whose breaker was open from before the call
/// began until after it ended.
class WrongResults {
 public:
  using Clock = std::chrono::steady_clock;
  /// Returns the current state of all breakers.
  using Ask = std::function<std::vector<BreakerInfo>()>;

  explicit WrongResults(Ask ask) : ask_(std::move(ask)) {}

  /// Records a call of rows x width elements that just ended with a corrupted result.
  void add(const char* by, int64_t rows, int64_t width, Clock::time_point began) {
    const std::lock_guard lock(mutex_);
    ++count_;
    const std::string what = class_of(rows, width);
    for (const Rest& rest : rests_) {
      if (began < rest.from || rest.by != by) continue;
      if (rest.what != "all calls" && rest.what != what) continue;
      // Events arrive late and out of order, so ask whether this very opening still lasts.
      late_ += lasts(rest) ? 1 : 0;
    }
  }
  void add(const BreakerEvent& event) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    std::erase_if(rests_, [&](const Rest& rest) {
      return rest.by == event.implementation && rest.what == event.what;
    });
    // Openings by hand are published by the next maintenance pass, within 100 ms.
    if (event.to != BreakerState::open || event.why == "manual override") return;
    rests_.push_back({event.implementation, event.what, event.change, now});
    mismatches_ += event.why == "result differs from the reference" ? 1 : 0;
  }

  /// The implementation was withdrawn; its successor starts with a fresh breaker.
  void forget(std::string_view by) {
    const std::lock_guard lock(mutex_);
    std::erase_if(rests_, [&](const Rest& rest) { return rest.by == by; });
  }

  size_t count() const { return count_; }
  /// Classes opened by a mismatch.
  size_t mismatches() const { return mismatches_; }
  size_t late() const { return late_; }

 private:
  struct Rest {
    std::string by, what;
    uint64_t change;
    Clock::time_point from;
  };

  /// The name of the class as breakers report it.
  static std::string class_of(int64_t rows, int64_t width) {
    const auto bound = [](int64_t size) { return std::bit_ceil(static_cast<uint64_t>(size)); };
    return "f32 H<=" + std::to_string(bound(width)) + " rows<=" + std::to_string(bound(rows)) +
           " on cpu:0";
  }

  bool lasts(const Rest& rest) const {
    return std::ranges::any_of(ask_(), [&](const BreakerInfo& now) {
      return now.implementation == rest.by && now.what == rest.what &&
             now.state == BreakerState::open && now.change == rest.change;
    });
  }

  Ask ask_;
  std::mutex mutex_;
  std::vector<Rest> rests_;
  size_t count_ = 0, late_ = 0, mismatches_ = 0;
};

}  // namespace opmux::test
