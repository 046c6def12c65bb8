#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/opmux.hpp>

namespace opmux::test {

/// Who spoilt what this thread computed last; null: nobody.
inline thread_local const char* spoilt_by = nullptr;

/// Which wrong results came from an implementation whose class was open when their call began.
class WrongResults {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call of so many rows and columns that got a result somebody spoilt.
  void add(const char* by, int64_t rows, int64_t width, Clock::time_point began) {
    const std::lock_guard lock(mutex_);
    results_.push_back({by, log2_of(rows), log2_of(width), began});
  }
  void add(const BreakerEvent& event) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    const bool open = event.to == BreakerState::open || event.to == BreakerState::isolated;
    // What is opened by hand is published when it is its turn, within 100 ms.
    if (open && event.why == "by hand") return;
    if (open) {
      rests_.push_back({event.implementation, event.what, now, Clock::time_point::max()});
      mismatches_ += event.why == "it computed something else than the reference" ? 1 : 0;
      return;
    }
    for (Rest& rest : rests_) {
      if (rest.by == event.implementation && rest.what == event.what)
        rest.until = std::min(rest.until, now);
    }
  }

  /// It is withdrawn: what is registered in its place starts anew.
  void forget(std::string_view by) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    for (Rest& rest : rests_) {
      if (rest.by == by) rest.until = std::min(rest.until, now);
    }
  }

  size_t count() const { return results_.size(); }
  /// Classes that were opened by a mismatch.
  size_t mismatches() const { return mismatches_; }
  size_t late() const {
    return static_cast<size_t>(std::ranges::count_if(results_, [this](const Result& result) {
      return std::ranges::any_of(rests_, [&](const Rest& rest) {
        // Listeners hear of the end of a rest a little after it.
        const bool open = result.began > rest.from && (rest.until == Clock::time_point::max() ||
                                                       result.began < rest.until - kTold);
        return open && rest.by == result.by &&
               (rest.what == "all calls" || rest.what == result.what());
      });
    }));
  }

 private:
  static constexpr std::chrono::milliseconds kTold{60};

  struct Result {
    const char* by;
    uint8_t rows, width;  ///< powers of two
    Clock::time_point began;

    /// The class of its call, as breakers call it.
    std::string what() const {
      return "f32 H<=" + std::to_string(1 << width) + " rows<=" + std::to_string(1 << rows) +
             " on cpu:0";
    }
  };
  struct Rest {
    std::string by, what;
    Clock::time_point from, until;
  };

  static uint8_t log2_of(int64_t size) {
    return static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(size) - 1));
  }

  std::mutex mutex_;
  std::vector<Result> results_;
  std::vector<Rest> rests_;
  size_t mismatches_ = 0;
};

}  // namespace opmux::test
