#include "health/breaker.hpp"

namespace opmux::health {
namespace {

BreakerKey key_number(uint8_t number) {
  BreakerKey key;
  key.log2[0] = number;
  return key;
}

/// A breaker whose changes are published immediately.
struct Bench {
  explicit Bench(bool is_reference = false) : breaker(is_reference, {}, 1) {}

  BreakerChange follow(const BreakerChange& change) {
    if (change.publish) {
      breaker.published(breaker.announce());
    }
    return change;
  }
  void fail(uint8_t key, int times) {
    for (int i = 0; i < times; ++i) {
      const Pass pass = breaker.enter(key_number(key));
      if (pass.admitted) follow(breaker.leave(key_number(key), pass, Ending::failure, now));
    }
  }
  void succeed(uint8_t key, int times) {
    for (int i = 0; i < times; ++i) {
      const Pass pass = breaker.enter(key_number(key));
      if (pass.admitted) follow(breaker.leave(key_number(key), pass, Ending::success, now));
    }
  }
  void drag(uint8_t key, int times) {
    for (int i = 0; i < times; ++i) {
      Pass pass = breaker.enter(key_number(key));
      pass.took_ns = 2 * kMillisecondNs;
      if (pass.admitted) follow(breaker.leave(key_number(key), pass, Ending::success, now));
    }
  }
  void wait(uint64_t seconds) {
    now += seconds * kSecondNs;
    follow(breaker.advance(now));
  }
  BreakerState state(uint8_t key) {
    const auto cell = breaker.cell_of(key_number(key));
    return cell ? cell->state : BreakerState::closed;
  }

  Breaker breaker;
  uint64_t now = kSecondNs;
};

TEST(Breaker, five_failures_in_a_row_open_a_class_and_no_other) {
  Bench bench;
  bench.fail(1, 4);
  bench.succeed(1, 1);
  bench.fail(1, 4);
  EXPECT_EQ(bench.state(1), BreakerState::closed);
  bench.fail(1, 1);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  EXPECT_FALSE(bench.breaker.enter(key_number(1)).admitted);
  EXPECT_TRUE(bench.breaker.enter(key_number(2)).admitted);
}

TEST(Breaker, half_of_the_last_hundred_opens_once_there_are_twenty) {
  Bench bench;
  for (int i = 0; i < 9; ++i) {
    bench.fail(1, 1);
    bench.succeed(1, 1);
  }
  bench.fail(1, 1);
  EXPECT_EQ(bench.state(1), BreakerState::closed) << "nineteen outcomes";
  bench.fail(1, 1);
  EXPECT_EQ(bench.state(1), BreakerState::open);
}

TEST(Breaker, two_probes_that_end_well_close_it_and_one_that_fails_opens_it_for_longer) {
  Bench bench;
  bench.fail(1, 5);
  bench.wait(26);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  bench.wait(7);
  ASSERT_EQ(bench.state(1), BreakerState::half_open);
  bench.succeed(1, 1);
  bench.fail(1, 1);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  bench.wait(53);
  EXPECT_EQ(bench.state(1), BreakerState::open) << "open twice as long";
  bench.wait(14);
  ASSERT_EQ(bench.state(1), BreakerState::half_open);
  bench.succeed(1, 2);
  EXPECT_EQ(bench.state(1), BreakerState::closed);
}

TEST(Breaker, half_open_lets_three_calls_in_at_once) {
  Bench bench;
  bench.fail(1, 5);
  bench.wait(40);
  std::array<Pass, 3> passes;
  for (Pass& pass : passes) pass = bench.breaker.enter(key_number(1));
  EXPECT_FALSE(bench.breaker.enter(key_number(1)).admitted);
  // A call without a verdict returns its permit.
  bench.breaker.leave(key_number(1), passes[0], Ending::neither, bench.now);
  EXPECT_TRUE(bench.breaker.enter(key_number(1)).admitted);
  EXPECT_EQ(bench.state(1), BreakerState::half_open);
}

TEST(Breaker, three_open_classes_open_the_implementation) {
  Bench bench;
  bench.fail(1, 5);
  bench.fail(2, 5);
  EXPECT_TRUE(bench.breaker.enter(key_number(9)).admitted);
  bench.fail(3, 5);
  EXPECT_FALSE(bench.breaker.enter(key_number(9)).admitted);
  EXPECT_EQ(bench.state(9), BreakerState::open);
}

TEST(Breaker, classes_beyond_the_sixteenth_share_one) {
  Bench bench;
  for (uint8_t key = 0; key < 16; ++key) bench.fail(key, 1);
  bench.fail(20, 3);
  bench.fail(21, 2);
  EXPECT_EQ(bench.state(22), BreakerState::open);
  EXPECT_EQ(bench.state(3), BreakerState::closed);
}

TEST(Breaker, a_hundred_clean_outcomes_make_it_trusted_again) {
  Bench bench;
  bench.fail(1, 1);
  EXPECT_TRUE(bench.breaker.announced_armed());
  bench.succeed(2, 99);
  EXPECT_TRUE(bench.breaker.announced_armed());
  bench.succeed(1, 1);
  EXPECT_FALSE(bench.breaker.announced_armed());
  EXPECT_FALSE(bench.breaker.cell_of(key_number(1)));
}

TEST(Breaker, nothing_opens_before_successes_are_recorded_too) {
  Breaker breaker(false, {}, 1);
  bool publish = false;
  for (int i = 0; i < 20; ++i)
    publish |= breaker.leave(key_number(1), {}, Ending::failure, kSecondNs).publish;
  EXPECT_TRUE(publish);
  EXPECT_EQ(breaker.cell_of(key_number(1))->state, BreakerState::closed);
  breaker.published(breaker.announce());
  for (int i = 0; i < 4; ++i) breaker.leave(key_number(1), {}, Ending::failure, kSecondNs);
  EXPECT_EQ(breaker.cell_of(key_number(1))->state, BreakerState::open);
}

/// Two results are wrong while another publication, which does not see the first of them, is under
/// way. Its end does not mean that calls consult the breaker, so the second opening, too, publishes
/// before its listeners are notified.
TEST(Breaker, a_publication_announced_before_the_arming_does_not_end_it) {
  Breaker breaker(false, {}, 1);
  const uint32_t earlier = breaker.announce();
  EXPECT_TRUE(breaker.trip(key_number(1), kSecondNs, kSecondNs).at_once);
  const uint32_t own = breaker.announce();
  breaker.published(earlier);
  EXPECT_TRUE(breaker.trip(key_number(2), kSecondNs, kSecondNs).at_once);
  breaker.published(own);
  EXPECT_FALSE(breaker.trip(key_number(3), kSecondNs, kSecondNs).at_once);
}

TEST(Breaker, changes_have_growing_numbers_that_tell_whether_a_state_lasts) {
  Bench bench;
  const BreakerChange opened = bench.breaker.trip(key_number(1), bench.now, bench.now);
  ASSERT_EQ(opened.count, 1);
  EXPECT_EQ(bench.breaker.cell_of(key_number(1))->change, opened.steps[0].change);
  const BreakerChange closed = bench.breaker.force(Force::close, bench.now);
  ASSERT_EQ(closed.count, 1);
  EXPECT_GT(closed.steps[0].change, opened.steps[0].change);
  // The same class opens for the first time again, with another number.
  const BreakerChange again = bench.breaker.trip(key_number(1), bench.now, bench.now);
  ASSERT_EQ(again.count, 1);
  EXPECT_EQ(again.steps[0].openings, opened.steps[0].openings);
  EXPECT_GT(again.steps[0].change, closed.steps[0].change);
}

TEST(Breaker, by_hand_it_opens_closes_and_stays_open) {
  Bench bench;
  bench.follow(bench.breaker.force(Force::open, bench.now));
  EXPECT_EQ(bench.state(1), BreakerState::open);
  bench.wait(40);
  EXPECT_EQ(bench.state(1), BreakerState::half_open);
  bench.follow(bench.breaker.force(Force::isolate, bench.now));
  bench.wait(10'000);
  EXPECT_EQ(bench.state(1), BreakerState::isolated);
  EXPECT_FALSE(bench.breaker.enter(key_number(1)).admitted);
  bench.follow(bench.breaker.force(Force::close, bench.now));
  EXPECT_TRUE(bench.breaker.enter(key_number(1)).admitted);
  EXPECT_FALSE(bench.breaker.announced_armed());
}

TEST(Breaker, the_reference_never_opens) {
  Bench bench(true);
  bench.fail(1, 100);
  bench.follow(bench.breaker.force(Force::isolate, bench.now));
  EXPECT_TRUE(bench.breaker.enter(key_number(1)).admitted);
}

TEST(Breaker, an_opening_never_lasts_longer_than_its_limit) {
  const BreakerLimits limits;
  for (uint32_t n = 1; n < 100; ++n) {
    const uint64_t seconds = std::min(30 * n, 300u);
    for (const uint64_t random : {uint64_t{0}, uint64_t{12345678901}, UINT64_MAX}) {
      const uint64_t lasts = BreakerRules::open_for_ns(n, random, limits);
      EXPECT_GE(lasts, seconds * 27 * kSecondNs / 30);
      EXPECT_LE(lasts, seconds * 33 * kSecondNs / 30);
    }
  }
}

BreakerLimits timed() {
  BreakerLimits limits;
  limits.slow_call_ns = kMillisecondNs;
  return limits;
}

TEST(Breaker, a_wrong_result_opens_its_class_at_once) {
  Bench bench;
  const BreakerChange change = bench.breaker.trip(key_number(1), bench.now, bench.now);
  EXPECT_TRUE(change.at_once) << "calls do not consult it yet";
  EXPECT_EQ(change.steps[0].cause, Cause::mismatch);
  bench.follow(change);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  EXPECT_FALSE(bench.breaker.enter(key_number(1)).admitted);
  EXPECT_TRUE(bench.breaker.enter(key_number(2)).admitted);
  EXPECT_FALSE(bench.breaker.trip(key_number(2), bench.now, bench.now).at_once)
      << "every call consults it now";
}

TEST(Breaker, a_wrong_result_from_before_it_opened_is_ignored) {
  Bench bench;
  const uint64_t ended = bench.now;
  bench.wait(1);
  bench.follow(bench.breaker.trip(key_number(1), ended, bench.now));
  EXPECT_EQ(bench.breaker.trip(key_number(1), ended, bench.now).count, 0u);
  bench.wait(40);
  EXPECT_EQ(bench.state(1), BreakerState::half_open);
  EXPECT_EQ(bench.breaker.trip(key_number(1), ended, bench.now).count, 0u);
  EXPECT_EQ(bench.state(1), BreakerState::half_open);
  bench.follow(bench.breaker.trip(key_number(1), bench.now, bench.now));
  EXPECT_EQ(bench.state(1), BreakerState::open);
}

TEST(Breaker, the_reference_is_never_wrong) {
  Bench bench(true);
  EXPECT_FALSE(bench.breaker.trip(key_number(1), bench.now, bench.now).publish);
  EXPECT_EQ(bench.state(1), BreakerState::closed);
}

TEST(Breaker, calls_are_not_timed_unless_a_limit_says_so) {
  Bench bench;
  EXPECT_FALSE(bench.breaker.times_calls());
  bench.fail(1, 1);
  bench.drag(1, 99);
  EXPECT_EQ(bench.state(1), BreakerState::closed);
  EXPECT_TRUE(bench.follow(bench.breaker.set_limits(timed())).publish) << "calls are timed now";
  EXPECT_TRUE(bench.breaker.times_calls());
  EXPECT_FALSE(bench.breaker.set_limits(timed()).publish) << "as before";
}

TEST(Breaker, half_of_the_window_being_slow_opens_a_class) {
  Bench bench;
  EXPECT_TRUE(bench.follow(bench.breaker.set_limits(timed())).publish);
  bench.drag(1, 1);
  bench.succeed(1, 10);
  bench.drag(1, 9);
  EXPECT_EQ(bench.state(1), BreakerState::open) << "ten of twenty";
  EXPECT_EQ(bench.breaker.cell_of(key_number(1))->cause, Cause::slow_rate);
  EXPECT_EQ(bench.state(2), BreakerState::closed);
}

TEST(Breaker, half_of_the_compared_calls_being_slower_than_the_reference_opens_a_class) {
  Bench bench;
  BreakerLimits limits;
  limits.slow_factor = 2;
  EXPECT_FALSE(bench.breaker.compares_times());
  EXPECT_FALSE(bench.breaker.set_limits(limits).publish) << "calls need not be timed";
  EXPECT_TRUE(bench.breaker.compares_times());
  const auto compare = [&](uint8_t key, uint64_t took_ns, int times) {
    for (int i = 0; i < times; ++i)
      bench.follow(bench.breaker.compare(key_number(key), took_ns, 100, bench.now, bench.now));
  };
  compare(1, 200, 50);
  EXPECT_FALSE(bench.breaker.cell_of(key_number(1))) << "no class without a slow call";
  compare(1, 201, 1);
  compare(1, 200, 10);
  compare(1, 300, 8);
  EXPECT_EQ(bench.state(1), BreakerState::closed) << "nine of nineteen";
  compare(1, 300, 1);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  EXPECT_EQ(bench.breaker.cell_of(key_number(1))->cause, Cause::slow_rate);
  EXPECT_FALSE(bench.breaker.enter(key_number(1)).admitted);
  EXPECT_EQ(bench.state(2), BreakerState::closed);
}

TEST(Breaker, a_comparison_from_before_it_opened_is_ignored_and_the_reference_is_never_slow) {
  Bench bench;
  BreakerLimits limits;
  limits.slow_factor = 1;
  limits.min_calls = 1;
  (void)bench.breaker.set_limits(limits);
  const uint64_t ended = bench.now;
  bench.wait(1);
  bench.follow(bench.breaker.compare(key_number(1), 2, 1, ended, bench.now));
  ASSERT_EQ(bench.state(1), BreakerState::open);
  bench.wait(40);
  bench.succeed(1, 2);
  ASSERT_EQ(bench.state(1), BreakerState::closed);
  EXPECT_EQ(bench.breaker.compare(key_number(1), 2, 1, ended, bench.now).count, 0u);
  EXPECT_EQ(bench.breaker.compare(key_number(1), 2, 1, bench.now, bench.now).count, 1u);
  Bench reference(true);
  (void)reference.breaker.set_limits(limits);
  EXPECT_FALSE(reference.breaker.compares_times());
  EXPECT_EQ(reference.breaker.compare(key_number(1), 2, 1, bench.now, bench.now).count, 0u);
}

TEST(Breaker, a_slow_probe_opens_again_and_timing_outlasts_clean_calls) {
  Bench bench;
  bench.follow(bench.breaker.set_limits(timed()));
  bench.drag(1, 20);
  ASSERT_EQ(bench.state(1), BreakerState::open);
  bench.wait(40);
  bench.drag(1, 1);
  EXPECT_EQ(bench.state(1), BreakerState::open);
  bench.wait(70);
  bench.succeed(1, 2);
  EXPECT_EQ(bench.state(1), BreakerState::closed);
  bench.succeed(1, 200);
  bench.drag(1, 20);
  EXPECT_EQ(bench.state(1), BreakerState::open) << "still armed";
}

TEST(Breaker, timing_does_not_arm_and_the_first_slow_call_does) {
  Bench bench;
  bench.follow(bench.breaker.set_limits(timed()));
  EXPECT_FALSE(bench.breaker.announced_armed());
  bench.drag(1, 1);
  EXPECT_TRUE(bench.breaker.announced_armed());
  bench.succeed(1, 100);
  EXPECT_FALSE(bench.breaker.announced_armed()) << "the implementation is trusted again";
  EXPECT_TRUE(bench.breaker.times_calls());
}

TEST(Breaker, timing_that_is_taken_back_disarms_with_clean_calls) {
  Bench bench;
  bench.follow(bench.breaker.set_limits(timed()));
  bench.drag(1, 1);
  EXPECT_TRUE(bench.follow(bench.breaker.set_limits({})).publish);
  EXPECT_FALSE(bench.breaker.times_calls());
  EXPECT_TRUE(bench.breaker.announced_armed());
  bench.succeed(1, 100);
  EXPECT_FALSE(bench.breaker.announced_armed());
}

TEST(Breaker, the_reference_is_never_timed) {
  Bench bench(true);
  EXPECT_FALSE(bench.breaker.set_limits(timed()).publish);
  EXPECT_FALSE(bench.breaker.times_calls());
}

}  // namespace
}  // namespace opmux::health
