#pragma once

#include <array>
#include <cstdint>

#include "health/breaker_rules.hpp"

namespace opmux::health {

/// The last outcomes of a class, newest over oldest.
class OutcomeWindow {
 public:
  void clear() { size_ = next_ = failures_ = 0; }
  void add(bool failed, uint32_t limit) {
    if (size_ > limit) clear();  // the limit was lowered meanwhile
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

/// The state of one class of calls. Plain data; whoever holds the breaker's lock changes it.
struct BreakerCell {
  BreakerState state = BreakerState::closed;
  /// As decisions that are kept see it: changes with a publication.
  bool published_open = false;
  uint32_t consecutive = 0;  ///< failures in a row
  uint32_t permits_out = 0;
  uint32_t successes = 0;  ///< of permits of this period
  uint32_t period = 0;     ///< moves with the state: permits of an earlier one close nothing
  uint32_t openings = 0;   ///< since it was last trusted
  uint64_t open_until_ns = 0;
  uint64_t opened_ns = 0;     ///< last
  Cause cause = Cause::none;  ///< of the state
  OutcomeWindow window;
  OutcomeWindow slow;  ///< the same, of calls that ended well: which were slow

  /// Permits stay out: whoever has one gives it back.
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
