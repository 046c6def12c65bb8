#include <cstdlib>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "broken_rules.hpp"
#include "explore.hpp"

namespace opmux::test {
namespace {

using health::BreakerRules;

/// Draws mostly calls; the first thread advances time.
Script draw_script(std::mt19937_64& random, size_t threads, size_t events) {
  using enum Event;
  static constexpr std::array kDrawn{begin, begin,    begin,    end_ok, end_fail,
                                     begin, end_fail, end_fail, tick,   tick};
  Script script(threads);
  for (size_t thread = 0; thread < threads; ++thread) {
    const size_t kinds = thread == 0 ? kDrawn.size() : kDrawn.size() - 2;
    while (script[thread].size() < events) script[thread].push_back(kDrawn[random() % kinds]);
  }
  return script;
}

/// Scripts that reach each state, then random ones.
std::vector<Script> scripts(size_t threads, size_t events, size_t drawn) {
  using enum Event;
  std::vector<Script> all;
  if (threads == 2) {
    all = {{{begin, end_fail, begin, end_fail, tick, tick, begin, begin},
            {begin, begin, begin, tick, begin, begin, end_ok, end_ok}},
           {{begin, end_fail, begin, end_fail, tick, begin, end_fail, tick},
            {begin, begin, end_fail, begin, end_ok, begin, end_fail, begin}}};
  } else {
    all = {{{begin, end_fail, begin, end_fail, tick},
            {begin, begin, begin, begin, end_ok},
            {begin, begin, begin, end_ok, end_ok}}};
  }
  std::mt19937_64 random(threads);
  while (all.size() < drawn) all.push_back(draw_script(random, threads, events));
  return all;
}

size_t how_many() {
  const char* const count = std::getenv("OPMUX_BREAKER_SCRIPTS");
  return count == nullptr ? 1 : std::stoul(count);
}

void expect_all_hold(size_t threads, size_t events) {
  for (const bool is_reference : {false, true}) {
    uint64_t states = 0;
    const std::vector<Script> all = scripts(threads, events, how_many());
    for (const Script& script : all) {
      const auto found = Explorer<BreakerRules>(script, is_reference).run();
      ASSERT_EQ(found.broken, 0) << found.how;
      states += found.states;
    }
    std::cout << threads << " threads x " << events << " events"
              << (is_reference ? ", the reference" : "") << ": " << states << " states of "
              << all.size() << " scripts\n";
    EXPECT_GT(states, is_reference ? 100u : 10'000u);
  }
}

TEST(BreakerModel, invariants_hold_in_all_interleavings_of_two_threads) { expect_all_hold(2, 8); }
TEST(BreakerModel, invariants_hold_in_all_interleavings_of_three_threads) { expect_all_hold(3, 5); }

/// The first invariant found violated in the script.
template <class Rules>
int caught(size_t script, bool is_reference = false) {
  return Explorer<Rules>(scripts(2, 8, 2)[script], is_reference).run().broken;
}

TEST(BreakerModel, each_invariant_broken_on_purpose_is_caught) {
  EXPECT_EQ(caught<RunsWhileOpen>(0), 1);
  EXPECT_EQ(caught<FourPermits>(0), 2);
  EXPECT_EQ(caught<ClosesAfterOne>(0), 3);
  EXPECT_EQ(caught<StaysHalfOpen>(1), 3);
  EXPECT_EQ(caught<CountsTwice>(0), 4);
  EXPECT_EQ(caught<ReferenceOpens>(0, true), 5);
  EXPECT_EQ(caught<OpenTooLong>(1), 6);
  EXPECT_EQ(caught<PublishesAtOnce>(0), 7);
}

}  // namespace
}  // namespace opmux::test
