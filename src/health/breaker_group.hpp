#pragma once

#include <cstdint>
#include <utility>

#include "health/breaker.hpp"
#include "health/publish_gate.hpp"

namespace opmux::health {

/// The breakers of one operator and the rate limit of its publications. `Breakers::for_each` visits
/// them; breakers may be added concurrently.
template <class Sync, class Rules, class Breakers>
class BasicBreakerGroup {
 public:
  Breakers& breakers() { return breakers_; }

  /// Publishes a change, at once or when the gate permits. `publish` recomputes every decision of
  /// the operator for all calls that start after it returned, and returns the current time.
  template <class Publish>
  void follow(const BreakerChange& change, uint64_t now_ns, Publish&& publish) {
    if (change.at_once) {
      // Rare: a result was wrong, and calls with cached plans would keep using the implementation.
      gate_.note(publish_all(std::forward<Publish>(publish)));
    } else if (change.publish && gate_.request(now_ns)) {
      gate_.done(publish_all(std::forward<Publish>(publish)));
    }
  }
  template <class Publish>
  void flush(uint64_t now_ns, Publish&& publish) {
    if (gate_.flush(now_ns)) gate_.done(publish_all(std::forward<Publish>(publish)));
  }
  uint64_t next_due_ns() { return gate_.next_due_ns(); }

 private:
  template <class Publish>
  uint64_t publish_all(Publish&& publish) {
    breakers_.for_each([](auto& breaker) { breaker.announce(); });
    const uint64_t done_ns = std::forward<Publish>(publish)();
    breakers_.for_each([](auto& breaker) { breaker.published(); });
    return done_ns;
  }

  Breakers breakers_;
  BasicPublishGate<Sync, Rules> gate_;
};

}  // namespace opmux::health
