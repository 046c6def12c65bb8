#pragma once

#include <array>
#include <cstdint>

#include "health/breaker_rules.hpp"

namespace opmux::health {

/// Ring buffer of the last outcomes of a class.
class OutcomeWindow {
 public:
  void clear() { size_ = next_ = failures_ = 0; }
  void add(bool failed, uint32_t limit) {
    if (size_ > limit) clear();  // the limit was lowered
    if (next_ >= limit) next_ = 0;
    const uint64_t bit = uint64_t{1} << (next_ % 64);
    uint64_t& word = bits_[next_ / 64];
    if (size_ == limit) {
      failures_ -= (word & bit) != 0 ? 1 : 0;
    } else {
      ++size_;
    }
    word = failed ? word | bit : word & ~bit;
    failures_ += failed ? 1 : 0;
    ++next_;
  }
  uint32_t size() const { return size_; }
  uint32_t failures() const { return failures_; }

 private:
  uint32_t size_ = 0, next_ = 0, failures_ = 0;
  std::array<uint64_t, BreakerLimits::kMaxWindow / 64> bits_{};
};

/// Why a breaker changed its state.
enum class Cause : uint8_t {
  none,
  failures,
  failure_rate,
  slow_rate,
  probe,
  classes,
  time,
  hand,
  mismatch
};

/// The state of one class of calls. Plain data, guarded by the breaker's mutex.
struct BreakerCell {
  BreakerState state = BreakerState::closed;
  /// Whether published decisions see the cell as open; updated by announce() only.
  bool published_open = false;
  uint32_t consecutive = 0;  ///< consecutive failures
  /// Half-open permits held by calls that have not ended.
  uint32_t permits_out = 0;
  uint32_t successes = 0;  ///< successful calls with a permit of this period
  /// Incremented at each transition, so that a permit of an earlier period cannot close the cell.
  uint32_t period = 0;
  uint32_t openings = 0;  ///< since the cell was last forgotten; the open time grows with it
  uint64_t open_until_ns = 0;
  uint64_t opened_ns = 0;     ///< time of the last opening
  Cause cause = Cause::none;  ///< reason for the current state
  OutcomeWindow window;
  OutcomeWindow slow;  ///< of the successful calls, which were slow

  /// Resets the cell. `permits_out` stays, because the calls that hold permits still return them.
  void forget() {
    enter(BreakerState::closed);
    published_open = false;
    openings = 0;
    open_until_ns = 0;
  }
  void enter(BreakerState next) {
    state = next;
    consecutive = successes = 0;
    window.clear();
    slow.clear();
    ++period;
  }
};

}  // namespace opmux::health
