#pragma once

#include <algorithm>
#include <cstdint>

#include <opmux/health.hpp>

namespace opmux::health {

inline constexpr uint64_t kMillisecondNs = 1'000'000;
inline constexpr uint64_t kSecondNs = 1'000 * kMillisecondNs;

/// The numbers of a breaker, settable by policy.
struct BreakerLimits {
  static constexpr uint32_t kMaxWindow = 1024;

  uint32_t consecutive_failures = 5;  ///< in a row: opens
  double failure_rate = 0.5;          ///< of the window: opens
  uint32_t window = 100;              ///< outcomes that the rate looks back on, <= kMaxWindow
  uint32_t min_calls = 20;            ///< in the window before the rate counts
  uint64_t open_for_ns = 30 * kSecondNs;
  uint64_t open_at_most_ns = 300 * kSecondNs;
  uint32_t permits = 3;           ///< calls at once while half open
  uint32_t successes = 2;         ///< of permits, that close it
  uint32_t open_classes = 3;      ///< that open the whole implementation
  uint32_t clean_outcomes = 100;  ///< after which an armed implementation is trusted again
  uint64_t jitter_permille = 100;
  uint64_t slow_call_ns = 0;  ///< calls that take longer are slow; 0 = calls are not timed
  double slow_rate = 0.5;     ///< of the window, that were slow: opens

  friend bool operator==(const BreakerLimits&, const BreakerLimits&) = default;
};

/// At most one publication per operator in this time.
inline constexpr uint64_t kPublicationGapNs = 100 * kMillisecondNs;

using opmux::BreakerState;

/// What each state lets happen: the decisions of a breaker in one place, without its data. The
/// breaker takes them as a parameter, so that tests can break one at a time.
struct BreakerRules {
  /// Whether calls run without asking further.
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
  static bool opens_slow(uint32_t slow, uint32_t outcomes, const BreakerLimits& limits) {
    return outcomes >= std::min(limits.min_calls, limits.window) &&
           static_cast<double>(slow) >= limits.slow_rate * static_cast<double>(outcomes);
  }
  /// How much one failure adds to the counts.
  static uint32_t weight_of_failure() { return 1; }
  /// The reference is the last resort: it is never taken away.
  static bool can_open(bool is_reference) { return !is_reference; }
  /// How long the n-th opening in a row lasts; `random` spreads it.
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

}  // namespace opmux::health
