#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "stage.hpp"

/// Breakers with `slow_factor`: calls that are slower than the reference by more than a factor.
namespace opmux::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A kernel of copy that takes at least this long.
std::function<Outcome(CallFrame&)> copy_in(std::chrono::microseconds time) {
  return [time](CallFrame& call) {
    const auto until = Clock::now() + time;
    std::copy_n(call.data<const float>(1), call.tensor(1).elements(), call.data<float>(0));
    while (Clock::now() < until) {
    }
    return Outcome::ok;
  };
}

struct TruthOfSlowFactor : testing::Test {
  static Options options_for(std::vector<Event>& events) {
    Options options = bare();
    options.sources.own_thread = false;
    options.sink = [&events](const Event& event) { events.push_back(event); };
    return options;
  }
  TruthOfSlowFactor() {
    stage.add({.id = "copy/fast.one", .kind = Kind::default_}).body = copy_in({});
    stage.add({.id = "copy/plain.one", .kind = Kind::reference}).body = copy_in({});
  }
  void load(const std::string& text) {
    const Status status = stage.runtime.policy().load("opmux: 1\n" + text, "policy.yaml");
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(op(rows.y, rows.x).ok());
      waited += std::chrono::milliseconds(1);
      stage.runtime.tick(waited);  // compares the sample
    }
  }
  std::string ran() {
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
  }

  Rows rows;
  std::vector<Event> events;
  Stage stage{options_for(events)};
  const Operator op = stage.define(kCopy);
  std::chrono::nanoseconds waited = std::chrono::hours(1);
};

constexpr char kCompareAll[] = "shadow: {every: 1, share: 1}\n";

TEST_F(TruthOfSlowFactor, an_implementation_that_is_slower_than_the_reference_is_opened) {
  load(std::string(kCompareAll) + "breaker: {slow_factor: 2, slow_rate: 0.5}\n");
  stage.kernel("copy/fast.one").body = copy_in(std::chrono::microseconds(2000));
  run(19);
  EXPECT_EQ(ran(), "copy/fast.one") << "fewer than min_calls were compared";
  run(6);
  EXPECT_EQ(ran(), "copy/plain.one");
  const HealthReport report = stage.runtime.health().report();
  ASSERT_FALSE(report.breakers.empty());
  EXPECT_EQ(report.breakers[0].state, BreakerState::open);
  EXPECT_EQ(report.breakers[0].why, "slow-call rate too high");
}

TEST_F(TruthOfSlowFactor, one_that_is_not_slower_by_the_factor_stays) {
  load(std::string(kCompareAll) + "breaker: {slow_factor: 100, slow_rate: 0.9}\n");
  stage.kernel("copy/fast.one").body = copy_in(std::chrono::microseconds(100));
  stage.kernel("copy/plain.one").body = copy_in(std::chrono::microseconds(100));
  run(30);
  EXPECT_EQ(ran(), "copy/fast.one");
}

TEST_F(TruthOfSlowFactor, a_rule_limits_the_implementations_that_it_names) {
  load(std::string(kCompareAll) +
       "rules:\n  - {op: copy, impl: copy/fast.*, breaker: {slow_factor: 2, min_calls: 4}}\n");
  stage.kernel("copy/fast.one").body = copy_in(std::chrono::microseconds(2000));
  run(6);
  EXPECT_EQ(ran(), "copy/plain.one");
}

TEST_F(TruthOfSlowFactor, without_it_no_duration_counts) {
  load(kCompareAll);
  stage.kernel("copy/fast.one").body = copy_in(std::chrono::microseconds(1000));
  run(25);
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_TRUE(stage.runtime.health().report().breakers.empty());
}

TEST_F(TruthOfSlowFactor, without_the_shadow_check_an_event_says_that_nothing_is_compared) {
  load("breaker: {slow_factor: 2}\n");
  EXPECT_THAT(events, testing::Contains(testing::Field(&Event::code, "health.not_compared")));
  events.clear();
  load(std::string(kCompareAll) + "breaker: {slow_factor: 2}\n");
  EXPECT_THAT(events,
              testing::Not(testing::Contains(testing::Field(&Event::code, "health.not_compared"))));
}

}  // namespace
}  // namespace opmux::test
