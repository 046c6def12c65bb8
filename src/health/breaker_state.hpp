#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <opmux/health.hpp>

namespace opmux::health {

inline constexpr uint64_t kMillisecondNs = 1'000'000;
inline constexpr uint64_t kSecondNs = 1'000 * kMillisecondNs;

/// Thresholds of a breaker, set by policy.
struct BreakerLimits {
  static constexpr uint32_t kMaxWindow = 1024;

  uint32_t consecutive_failures = 5;  ///< consecutive failures that open a class
  double failure_rate = 0.5;          ///< share of failures in the window that opens a class
  uint32_t window = 100;              ///< outcomes in the window, <= kMaxWindow
  uint32_t min_calls = 20;            ///< outcomes in the window before a rate counts
  uint64_t open_for_ns = 30 * kSecondNs;
  uint64_t open_at_most_ns = 300 * kSecondNs;
  uint32_t permits = 3;       ///< concurrent calls while half open
  uint32_t successes = 2;     ///< successful probes that close a half-open class
  uint32_t open_classes = 3;  ///< open classes that open the whole implementation
  /// Good outcomes after which an armed implementation is disarmed.
  uint32_t clean_outcomes = 100;
  uint64_t jitter_permille = 100;
  uint64_t slow_call_ns = 0;  ///< slower calls count as slow; 0 = calls are not timed
  double slow_rate = 0.5;     ///< share of slow calls in the window that opens a class
  /// Calls that take more than this many times as long as the reference are slow; 0 = none.
  double slow_factor = 0;

  friend bool operator==(const BreakerLimits&, const BreakerLimits&) = default;
};

/// Minimum time between two publications of an operator.
inline constexpr uint64_t kPublicationGapNs = 100 * kMillisecondNs;

using opmux::BreakerState;

/// The decisions of a breaker, separate from its data. BasicBreaker takes them as a template
/// parameter so that tests can break one rule at a time.
struct BreakerRules {
  /// Whether calls run without a permit.
  static bool runs_freely(BreakerState state) { return state == BreakerState::closed; }
  static bool permit_is_free(uint32_t permits_out, const BreakerLimits& limits) {
    return permits_out < limits.permits;
  }
  static bool closes(uint32_t successes, const BreakerLimits& limits) {
    return successes >= limits.successes;
  }
  static bool opens_half_open(bool failed) { return failed; }
  static bool opens_closed(uint32_t consecutive, uint32_t failures, uint32_t outcomes,
                           const BreakerLimits& limits) {
    if (consecutive >= limits.consecutive_failures) return true;
    return outcomes >= std::min(limits.min_calls, limits.window) &&
           static_cast<double>(failures) >= limits.failure_rate * static_cast<double>(outcomes);
  }
  static bool is_slow(uint64_t took_ns, const BreakerLimits& limits) {
    return limits.slow_call_ns != 0 && took_ns > limits.slow_call_ns;
  }
  static bool is_slower(uint64_t took_ns, uint64_t reference_ns, const BreakerLimits& limits) {
    return limits.slow_factor > 0 &&
           static_cast<double>(took_ns) > limits.slow_factor * static_cast<double>(reference_ns);
  }
  static bool opens_slow(uint32_t slow, uint32_t outcomes, const BreakerLimits& limits) {
    return outcomes >= std::min(limits.min_calls, limits.window) &&
           static_cast<double>(slow) >= limits.slow_rate * static_cast<double>(outcomes);
  }
  /// Amount by which one failure raises the counters.
  static uint32_t weight_of_failure() { return 1; }
  /// The reference is the fallback of last resort, so its breaker never opens.
  static bool can_open(bool is_reference) { return !is_reference; }
  /// Duration of the n-th consecutive opening; `random` adds jitter.
  static uint64_t open_for_ns(uint32_t n, uint64_t random, const BreakerLimits& limits) {
    const uint64_t most = std::max(limits.open_at_most_ns, limits.open_for_ns);
    const uint64_t factor = std::max<uint64_t>(n, 1);
    const uint64_t whole =
        limits.open_for_ns > most / factor ? most : std::min(most, limits.open_for_ns * factor);
    const uint64_t spread = whole / 1000 * limits.jitter_permille;
    return spread == 0 ? whole : whole - spread + random % (2 * spread + 1);
  }
  static bool may_publish(uint64_t now_ns, uint64_t last_ns) {
    return now_ns >= last_ns + kPublicationGapNs;
  }
};

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
  /// Number of the transition to the current state; 0 before the first. Never used twice by a
  /// breaker.
  uint64_t change = 0;
  uint64_t open_until_ns = 0;
  uint64_t opened_ns = 0;     ///< time of the last opening
  Cause cause = Cause::none;  ///< reason for the current state
  OutcomeWindow window;
  OutcomeWindow slow;    ///< of the successful calls, which were slow
  OutcomeWindow slower;  ///< of the calls that were compared with the reference, which were slower

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
    slower.clear();
    ++period;
  }
};

}  // namespace opmux::health
