#pragma once

#include "health/breaker_state.hpp"

/// Breaker rules with one deliberate error each; the tests must find it.
namespace opmux::test {

using health::BreakerLimits;
using health::BreakerRules;

struct RunsWhileOpen : BreakerRules {
  static bool runs_freely(health::BreakerState) { return true; }
};
struct FourPermits : BreakerRules {
  static bool permit_is_free(uint32_t out, const BreakerLimits& limits) {
    return out <= limits.permits;
  }
};
struct ClosesAfterOne : BreakerRules {
  static bool closes(uint32_t successes, const BreakerLimits&) { return successes >= 1; }
};
struct StaysHalfOpen : BreakerRules {
  static bool opens_half_open(bool) { return false; }
};
struct CountsTwice : BreakerRules {
  static uint32_t weight_of_failure() { return 2; }
};
struct ReferenceOpens : BreakerRules {
  static bool can_open(bool) { return true; }
};
struct OpenTooLong : BreakerRules {
  static uint64_t open_for_ns(uint32_t n, uint64_t random, const BreakerLimits& limits) {
    return BreakerRules::open_for_ns(1, random, limits) * n * n;
  }
};
struct PublishesAtOnce : BreakerRules {
  static bool may_publish(uint64_t, uint64_t) { return true; }
};

}  // namespace opmux::test
