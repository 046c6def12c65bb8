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

/// Which wrong results came from an implementation whose class was open when their call began. They
/// are judged as they come, since there are millions of them.
class WrongResults {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call of so many rows and columns that got a result somebody spoilt.
  void add(const char* by, int64_t rows, int64_t width, Clock::time_point began) {
    const std::lock_guard lock(mutex_);
    ++count_;
    const Result result{by, log2_of(rows), log2_of(width), began};
    for (const Rest& rest : rests_) {
      if (!rest.may_cover(result)) continue;
      if (rest.until == Clock::time_point::max()) suspects_.push_back(result);
      late_ += rest.covers(result) ? 1 : 0;
    }
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
    end_rests(now, [&](const Rest& rest) {
      return rest.by == event.implementation && rest.what == event.what;
    });
  }

  /// It is withdrawn: what is registered in its place starts anew.
  void forget(std::string_view by) {
    const std::lock_guard lock(mutex_);
    end_rests(Clock::now(), [&](const Rest& rest) { return rest.by == by; });
  }

  size_t count() const { return count_; }
  /// Classes that were opened by a mismatch.
  size_t mismatches() const { return mismatches_; }
  /// At the end: what began in a rest that still lasts is late too.
  size_t late() const { return late_ + suspects_.size(); }

 private:
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

    bool may_cover(const Result& result) const {
      return result.began > from && by == result.by &&
             (what == "all calls" || what == result.what());
    }
    /// Listeners hear of the end of a rest a little after it.
    bool covers(const Result& result) const {
      return until != Clock::time_point::max() && result.began < until - kTold && may_cover(result);
    }
  };

  /// Judges what waited for the end of these, and forgets those that no call can have begun in.
  template <class Which>
  void end_rests(Clock::time_point now, Which&& which) {
    for (Rest& rest : rests_) {
      if (rest.until != Clock::time_point::max() || !which(rest)) continue;
      rest.until = now;
      std::erase_if(suspects_, [&](const Result& result) {
        late_ += rest.covers(result) ? 1 : 0;
        return rest.may_cover(result);
      });
    }
    std::erase_if(rests_, [&](const Rest& rest) {
      return rest.until != Clock::time_point::max() && rest.until < now - kLongestCall;
    });
  }

  static uint8_t log2_of(int64_t size) {
    return static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(size) - 1));
  }

  static constexpr std::chrono::milliseconds kTold{60};
  static constexpr std::chrono::seconds kLongestCall{10};

  std::mutex mutex_;
  std::vector<Result> suspects_;
  std::vector<Rest> rests_;
  size_t count_ = 0, late_ = 0, mismatches_ = 0;
};

}  // namespace opmux::test
