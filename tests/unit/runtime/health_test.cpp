#include <chrono>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/plan/timed_run.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using std::chrono::seconds;

std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Options with_policy(Policy policy = {}) {
  Options options = bare();
  options.sources.own_thread = false;
  options.policy = std::move(policy);
  return options;
}

Outcome fails(CallFrame&) { return Outcome::failed; }
Outcome ends_well(CallFrame&) { return Outcome::ok; }

/// One operator with two implementations and the reference; the first one can be made to fail.
struct Clinic : Stage {
  explicit Clinic(Policy policy = {}) : Stage(with_policy(std::move(policy))) {
    op = define(kCopy);
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/middle.one", .kind = Kind::vendor});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  std::string run(const Rows& of) {
    return ran_by([&] { EXPECT_TRUE(op(of.y, of.x).ok()); });
  }
  void run(const Rows& of, int times) {
    for (int i = 0; i < times; ++i) (void)op(of.y, of.x);
  }
  void break_fast() { kernel("copy/fast.one").body = fails; }
  void mend_fast() { kernel("copy/fast.one").body = ends_well; }
  /// Runs everything that is due within the time.
  void wait(seconds time) {
    waited += time;
    runtime.tick(now() + waited);
  }
  std::string verdict(const Rows& of) {
    return candidate(op.explain(of.y, of.x), "copy/fast.one").verdict;
  }

  Operator op = runtime.op("rms_norm").value();
  Rows rows;
  seconds waited{0};
};

TEST(Health, an_implementation_that_fails_five_times_is_not_called_again) {
  Clinic clinic;
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
  clinic.break_fast();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one copy/middle.one") << i;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.wait(seconds(1));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 6u);
  EXPECT_EQ(clinic.stats("copy/fast.one").failed, 5u);
}

TEST(Health, other_shapes_continue_to_use_an_implementation_that_failed_for_some) {
  Clinic clinic;
  clinic.break_fast();
  clinic.run(clinic.rows, 5);
  clinic.mend_fast();
  const Rows larger(2, 64);
  EXPECT_EQ(clinic.run(larger), "copy/fast.one");
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.wait(seconds(1));  // The change is published.
  EXPECT_EQ(clinic.run(larger), "copy/fast.one");
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  EXPECT_EQ(clinic.run(larger), "copy/fast.one");
}

TEST(Health, it_is_probed_later_and_closed_after_two_successes) {
  Clinic clinic;
  clinic.break_fast();
  clinic.run(clinic.rows, 6);
  clinic.wait(seconds(20));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.wait(seconds(15));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one copy/middle.one") << "a failed probe";
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.mend_fast();
  clinic.wait(seconds(70));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).state, BreakerState::closed);
  clinic.run(clinic.rows, 100);
  EXPECT_TRUE(clinic.runtime.health().report().breakers.empty());
}

TEST(Health, time_that_starts_when_the_program_does_counts) {
  Clinic clinic;
  clinic.runtime.tick(seconds(1));
  clinic.break_fast();
  clinic.run(clinic.rows, 6);
  clinic.runtime.tick(seconds(20));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.mend_fast();
  clinic.runtime.tick(seconds(40));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
}

TEST(Health, a_clock_jump_of_a_year_does_not_affect_calls) {
  constexpr auto kYear = std::chrono::hours(365 * 24);
  for (const auto jump : {seconds(kYear), -seconds(kYear)}) {
    Clinic clinic;
    clinic.wait(seconds(1));
    clinic.break_fast();
    clinic.run(clinic.rows, 6);
    clinic.runtime.tick(now() + jump);
    const bool later = jump > seconds(0);
    EXPECT_EQ(clinic.run(clinic.rows), later ? "copy/fast.one copy/middle.one" : "copy/middle.one");
    clinic.mend_fast();
    if (later) clinic.waited += jump;
    clinic.wait(seconds(70));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
    EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).state, BreakerState::closed);
  }
}

TEST(Health, a_probe_that_runs_leaves_others_to_the_next_candidate) {
  Clinic clinic;
  clinic.break_fast();
  clinic.run(clinic.rows, 5);
  clinic.wait(seconds(40));
  int depth = 0;
  clinic.kernel("copy/fast.one").body = [&](CallFrame&) {
    const Rows more;
    if (++depth < 5) (void)clinic.op(more.y, more.x);
    return Outcome::ok;
  };
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one copy/fast.one copy/fast.one copy/middle.one");
}

TEST(Health, a_burst_of_failures_among_successes_opens_nothing) {
  Clinic clinic;
  int call = 0;
  clinic.kernel("copy/fast.one").body = [&](CallFrame&) {
    return ++call % 4 == 0 ? Outcome::failed : Outcome::ok;
  };
  clinic.run(clinic.rows, 200);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 200u);
}

TEST(Health, plans_record_their_successes_too) {
  Clinic clinic;
  auto plan = clinic.op.bind(clinic.rows.y, clinic.rows.x).value();
  int call = 0;
  clinic.kernel("copy/fast.one").body = [&](CallFrame&) {
    return ++call % 4 == 0 ? Outcome::failed : Outcome::ok;
  };
  for (int i = 0; i < 100; ++i) (void)plan(clinic.rows.y, clinic.rows.x);
  EXPECT_EQ(clinic.runtime.health().report().verdict, Health::healthy);
  clinic.break_fast();
  for (int i = 0; i < 5; ++i) (void)plan(clinic.rows.y, clinic.rows.x);
  EXPECT_EQ(clinic.runtime.health().report().verdict, Health::degraded);
  clinic.wait(seconds(1));
  EXPECT_EQ(plan.state(), Plan::State::stale);
  EXPECT_EQ(plan(clinic.rows.y, clinic.rows.x).code(), Code::failed) << "a stale plan still runs";
}

TEST(Health, explain_and_report_say_what_is_open_and_until_when) {
  Clinic clinic;
  clinic.break_fast();
  clinic.run(clinic.rows, 5);
  CallReport report;
  EXPECT_TRUE(clinic.op.with(report)(clinic.rows.y, clinic.rows.x).ok());
  EXPECT_TRUE(report.fell_back);
  EXPECT_EQ(report.implementation, "copy/middle.one");
  EXPECT_THAT(
      report.reason,
      testing::StartsWith("copy/fast.one is open: circuit breaker opened once, next probe in "));
  for (const bool published : {false, true}) {
    if (published) clinic.wait(seconds(1));
    const Explanation why = clinic.op.explain(clinic.rows.y, clinic.rows.x);
    EXPECT_EQ(why.chosen, "copy/middle.one");
    const Candidate fast = candidate(why, "copy/fast.one");
    EXPECT_EQ(fast.code, "health.open");
    EXPECT_THAT(fast.reason, testing::HasSubstr("next probe in "));
  }
  const HealthReport health = clinic.runtime.health().report();
  ASSERT_EQ(health.breakers.size(), 1u);
  EXPECT_EQ(health.breakers[0].implementation, "copy/fast.one");
  EXPECT_EQ(health.breakers[0].what, "f32 H<=8 rows<=2 on cpu:0");
  EXPECT_GT(health.breakers[0].next_probe_ms, 25'000u);
  EXPECT_THAT(health.reasons,
              testing::ElementsAre("backend fast: 1 of its 1 implementations have an "
                                   "open or half-open breaker"));
}

TEST(Health, what_is_required_and_open_is_an_error) {
  Clinic clinic({.rules = {{.op = "copy", .require = {"impl:copy/fast.one"}}}});
  clinic.break_fast();
  clinic.run(clinic.rows, 5);
  const Status open = clinic.op(clinic.rows.y, clinic.rows.x);
  EXPECT_EQ(open.code(), Code::no_candidate);
  EXPECT_EQ(open.reason(), "health.open");
  clinic.wait(seconds(1));
  EXPECT_EQ(clinic.op(clinic.rows.y, clinic.rows.x).code(), Code::no_candidate);
}

TEST(Health, listeners_are_notified_once_per_change) {
  Clinic clinic;
  std::vector<std::string> told;
  uint64_t change = 0;
  clinic.runtime.health().on_breaker([&](const BreakerEvent& event) {
    told.push_back(event.implementation + " " + std::string(name_of(event.to)));
    EXPECT_GT(event.change, change);
    change = event.change;
  });
  clinic.break_fast();
  clinic.run(clinic.rows, 20);
  EXPECT_EQ(told, (std::vector<std::string>{"copy/fast.one open"}));
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).change, change);
  clinic.mend_fast();
  clinic.wait(seconds(40));
  clinic.run(clinic.rows, 2);
  EXPECT_EQ(told, (std::vector<std::string>{"copy/fast.one open", "copy/fast.one half open",
                                            "copy/fast.one closed"}));
}

TEST(Health, by_hand_an_implementation_is_opened_closed_and_isolated) {
  Clinic clinic;
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
  ASSERT_TRUE(clinic.runtime.health().force_breaker("copy/fast.one", BreakerForce::isolate).ok());
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).what, "all calls");
  clinic.wait(seconds(1));
  clinic.wait(seconds(10'000));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  ASSERT_TRUE(clinic.runtime.health().force_breaker("copy/fast.one", BreakerForce::close).ok());
  clinic.wait(seconds(1));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
  ASSERT_TRUE(clinic.runtime.health().force_breaker("copy/fast.one", BreakerForce::open).ok());
  clinic.wait(seconds(1));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  clinic.wait(seconds(40));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
  EXPECT_EQ(clinic.runtime.health().force_breaker("copy/plain.one", BreakerForce::open).reason(),
            "health.reference");
  EXPECT_EQ(clinic.runtime.health().force_breaker("copy/fast.on", BreakerForce::open).code(),
            Code::not_found);
}

TEST(Health, a_failing_reference_is_still_called) {
  Clinic clinic({.deny = {"copy/fast.*", "copy/middle.*"}});
  clinic.kernel("copy/plain.one").body = fails;
  clinic.run(clinic.rows, 50);
  EXPECT_EQ(clinic.kernel("copy/plain.one").runs, 50u);
}

TEST(Health, policies_set_the_numbers) {
  BreakerOptions two;
  two.consecutive_failures = 2;
  two.open_for_ms = 1'000;
  Policy policy;
  policy.breaker = two;
  Clinic clinic(policy);
  clinic.break_fast();
  clinic.run(clinic.rows, 10);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 2u);
  clinic.mend_fast();
  clinic.wait(seconds(2));
  EXPECT_EQ(clinic.run(clinic.rows), "copy/fast.one");
}

TEST(Health, three_classes_that_fail_open_the_implementation) {
  Clinic clinic;
  clinic.break_fast();
  for (int64_t h = 1; h <= 128; ++h) clinic.run(Rows(2, h), 6);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 15u);
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).what, "all calls");
}

/// Succeeds after more than a millisecond.
Outcome takes_its_time(CallFrame&) {
  const auto until = now() + std::chrono::microseconds(1'100);
  while (now() < until) {
  }
  return Outcome::ok;
}

TEST(Health, slow_calls_open_a_breaker_if_a_policy_times_them) {
  Policy policy;
  Rule rule;
  rule.op = "copy";
  rule.impl = "copy/fast.*";
  rule.breaker.emplace().slow_call_us = 1'000;
  policy.rules = {rule};
  Clinic clinic(policy);
  clinic.kernel("copy/fast.one").body = takes_its_time;
  clinic.run(clinic.rows, 25);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 20u);
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).why, "slow-call rate too high");
  EXPECT_EQ(clinic.stats("copy/fast.one").failed, 0u);
}

Policy timing(int64_t microseconds) {
  Policy policy;
  policy.breaker.slow_call_us = microseconds;
  return policy;
}

TEST(Health, timed_calls_stay_on_the_fast_path) {
  Clinic clinic(timing(1'000'000));
  clinic.run(clinic.rows, 2);
  const uint64_t before = dispatch::own_thread_block().cold_sequence;
  clinic.run(clinic.rows, 100);
  EXPECT_EQ(dispatch::own_thread_block().cold_sequence, before);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 102u);
}

TEST(Health, an_implementation_that_becomes_slow_is_noticed) {
  Clinic clinic(timing(1'000));
  clinic.run(clinic.rows, 100);
  clinic.kernel("copy/fast.one").body = takes_its_time;
  clinic.run(clinic.rows, static_cast<int>(dispatch::kUntimedCalls) + 20);
  EXPECT_EQ(clinic.run(clinic.rows), "copy/middle.one");
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).why, "slow-call rate too high");
}

TEST(Health, a_plan_that_is_bound_while_calls_are_timed_is_timed) {
  Clinic clinic(timing(1'000));
  auto plan = clinic.op.bind(clinic.rows.y, clinic.rows.x).value();
  clinic.kernel("copy/fast.one").body = takes_its_time;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(plan(clinic.rows.y, clinic.rows.x).ok());
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).state, BreakerState::open);
}

TEST(Health, plans_are_timed_too) {
  Clinic clinic;
  auto plan = clinic.op.bind(clinic.rows.y, clinic.rows.x).value();
  clinic.kernel("copy/fast.one").body = takes_its_time;
  Policy policy;
  policy.breaker.slow_call_us = 1'000;
  ASSERT_TRUE(clinic.runtime.policy().set(policy).ok());
  clinic.wait(seconds(1));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(plan(clinic.rows.y, clinic.rows.x).ok());
  EXPECT_EQ(clinic.runtime.health().report().breakers.at(0).state, BreakerState::open);
}

TEST(Health, calls_are_timed_only_if_a_policy_enables_it) {
  Clinic clinic;
  clinic.kernel("copy/fast.one").body = takes_its_time;
  clinic.run(clinic.rows, 30);
  EXPECT_EQ(clinic.kernel("copy/fast.one").runs, 30u);
  EXPECT_TRUE(clinic.runtime.health().report().breakers.empty());
}

TEST(Health, lists_say_what_is_open) {
  Clinic clinic;
  ASSERT_TRUE(clinic.runtime.health().force_breaker("copy/middle.one", BreakerForce::isolate).ok());
  for (const OperatorInfo& op : clinic.runtime.list()) {
    for (const ImplementationInfo& info : op.implementations)
      EXPECT_EQ(info.breaker, info.id == "copy/middle.one" ? "isolated" : "closed") << info.id;
  }
}

TEST(Health, a_report_of_a_cached_decision_names_open_breakers) {
  Clinic clinic;
  clinic.break_fast();
  clinic.run(clinic.rows, 5);
  clinic.wait(seconds(1));
  clinic.run(clinic.rows, 2);
  CallReport report;
  EXPECT_TRUE(clinic.op.with(report)(clinic.rows.y, clinic.rows.x).ok());
  EXPECT_TRUE(report.cached);
  EXPECT_TRUE(report.fell_back);
  EXPECT_THAT(
      report.reason,
      testing::StartsWith("copy/fast.one is open: circuit breaker opened once, next probe in "));
}

}  // namespace
}  // namespace opmux::test
