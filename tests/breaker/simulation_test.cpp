#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "broken_rules.hpp"
#include "simulation.hpp"

namespace opmux::test {
namespace {

constexpr uint64_t kCalls = 20'000;

uint64_t simulated_lives() {
  const char* const wanted = std::getenv("OPMUX_SIMULATION_LIVES");
  return wanted == nullptr ? 10 : std::stoull(wanted);
}

TEST(Simulation, invariants_hold_for_every_seed) {
  uint64_t steps = 0, openings = 0, reloads = 0, publications = 0;
  for (uint64_t seed = 1; seed <= simulated_lives(); ++seed) {
    Simulation<SimulatedSync, BreakerRules> life(seed, kCalls);
    ASSERT_EQ(life.run(), "") << "seed " << seed << ", after " << life.steps() << " steps";
    steps += life.steps();
    openings += life.openings();
    reloads += life.reloads();
    publications += life.publications();
  }
  std::cout << simulated_lives() << " lives of " << kCalls << " calls: " << steps << " steps, "
            << openings << " openings, " << reloads << " reloads, " << publications
            << " publications\n";
  EXPECT_GT(openings, simulated_lives() * 20);
  EXPECT_GT(reloads, simulated_lives() * 10);
}

TEST(Simulation, the_same_seed_gives_the_same_run) {
  const auto trace = [](uint64_t seed) {
    Simulation<SimulatedSync, BreakerRules> life(seed, 2'000);
    EXPECT_EQ(life.run(), "");
    return life.trace();
  };
  EXPECT_EQ(trace(5), trace(5));
  EXPECT_NE(trace(5), trace(6));
}

/// The first violated property among ten seeds.
template <class Sync, class Rules>
std::string found_in_lives() {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string wrong = Simulation<Sync, Rules>(seed, kCalls).run();
    if (!wrong.empty()) return wrong.substr(0, 2);
  }
  return "";
}

TEST(Simulation, broken_rules_are_detected) {
  EXPECT_EQ((found_in_lives<SimulatedSync, RunsWhileOpen>()), "1:");
  EXPECT_EQ((found_in_lives<SimulatedSync, FourPermits>()), "2:");
  EXPECT_EQ((found_in_lives<SimulatedSync, ClosesAfterOne>()), "3:");
  EXPECT_EQ((found_in_lives<SimulatedSync, StaysHalfOpen>()), "3:");
  EXPECT_EQ((found_in_lives<SimulatedSync, CountsTwice>()), "4:");
  EXPECT_EQ((found_in_lives<SimulatedSync, ReferenceOpens>()), "5:");
  EXPECT_EQ((found_in_lives<SimulatedSync, OpenTooLong>()), "6:");
  EXPECT_EQ((found_in_lives<SimulatedSync, PublishesAtOnce>()), "7:");
}

/// A lock that does not exclude other threads.
struct NoLock : SimulatedSync {
  struct Mutex {
    void lock() { Fibers::current->pause(); }
    void unlock() {}
  };
};

TEST(Simulation, a_lock_that_does_not_exclude_is_detected) {
  EXPECT_NE((found_in_lives<NoLock, BreakerRules>()), "");
}

}  // namespace
}  // namespace opmux::test
