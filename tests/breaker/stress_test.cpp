#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "health/breaker_registry.hpp"

namespace opmux::test {
namespace {

using health::Breaker;
using health::Ending;

struct One {
  Breaker* breaker = nullptr;
  template <class Visit>
  void for_each(Visit&& visit) {
    visit(*breaker);
  }
};

TEST(BreakerStress, threads_share_a_breaker_without_losing_a_permit_or_a_failure) {
  Breaker breaker(false, {}, 3);
  health::BasicBreakerGroup<health::RealSync, health::BreakerRules, One> group;
  group.breakers().breaker = &breaker;
  std::atomic<uint64_t> clock{health::kSecondNs}, failures{0}, publications{0};
  std::atomic<int> permits{0}, most{0};
  const auto live = [&](unsigned seed) {
    std::mt19937 random(seed);
    const health::BreakerKey key;
    const auto publish = [&] {
      publications.fetch_add(1);
      return clock.load();
    };
    for (int i = 0; i < 5'000; ++i) {
      if (random() % 64 == 0) {
        const uint64_t now = clock.fetch_add(health::kSecondNs) + health::kSecondNs;
        group.follow(breaker.advance(now), now, publish);
        group.flush(now, publish);
      }
      const health::Pass pass = breaker.enter(key);
      if (!pass.admitted) continue;
      if (pass.permit) {
        const int now_out = permits.fetch_add(1) + 1;
        int seen = most.load();
        while (seen < now_out && !most.compare_exchange_weak(seen, now_out)) {
        }
        permits.fetch_sub(1);
      }
      const bool failed = random() % 3 == 0;
      failures.fetch_add(failed ? 1 : 0);
      const uint64_t now = clock.load();
      group.follow(breaker.leave(key, pass, failed ? Ending::failure : Ending::success, now), now,
                   publish);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i) threads.emplace_back(live, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(breaker.failures(), failures.load());
  EXPECT_LE(most.load(), 3);
  EXPECT_EQ(breaker.cell_of({})->permits_out, 0u);
  EXPECT_GT(publications.load(), 0u);
}

}  // namespace
}  // namespace opmux::test
