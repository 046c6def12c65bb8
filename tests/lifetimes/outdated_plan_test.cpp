#include <chrono>
#include <thread>

#include "stage.hpp"

namespace opmux::test {
namespace {

/// Many bound plans of two operators. A selector counts the decisions of each thread.
struct OutdatedPlanLifetime : testing::Test {
  OutdatedPlanLifetime() {
    stage.add({.id = "scale/a.x", .kind = Kind::default_, .priority = 100});
    Selector counting;
    counting.pick = [](const Selection&) -> std::optional<size_t> {
      ++decisions;
      return std::nullopt;
    };
    EXPECT_TRUE(stage.runtime.set_selector(counting).ok());
    for (int i = 0; i < kPlans; ++i) {
      copies.push_back(copy.bind(rows.y, rows.x).value());
      scales.push_back(scale.bind(rows.y, rows.x).value());
    }
  }
  static Options without_thread() {
    Options options = bare();
    options.sources.own_thread = false;
    return options;
  }
  void set_breaker(const std::string& id, BreakerForce action) {
    ASSERT_TRUE(stage.runtime.health().force_breaker(id, action).ok());
    // A second change within 100 ms is published later.
    now += std::chrono::seconds(1);
    stage.runtime.tick(now);
  }

  static constexpr int kPlans = 50;
  static thread_local int decisions;
  std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  Stage stage{without_thread()};
  const Operator copy = define_three_copies(stage);
  const Operator scale = stage.define("scale(out Tensor y[..., H], Tensor x[..., H])");
  const Rows rows{2, 16};
  std::vector<Plan> copies, scales;
};
thread_local int OutdatedPlanLifetime::decisions = 0;

TEST_F(OutdatedPlanLifetime, a_change_of_a_breaker_evaluates_no_plan_on_the_thread_that_made_it) {
  decisions = 0;
  set_breaker("copy/a.x", BreakerForce::isolate);
  EXPECT_EQ(decisions, 0);
  EXPECT_EQ(copies[0].state(), Plan::State::stale);
  EXPECT_EQ(decisions, 1);
  EXPECT_EQ(copies[0].state(), Plan::State::stale);
  EXPECT_EQ(decisions, 1) << "the state is evaluated once";
  EXPECT_EQ(scales[0].state(), Plan::State::current);
  EXPECT_EQ(decisions, 1) << "plans of other operators are not outdated";
}

TEST_F(OutdatedPlanLifetime, the_next_run_evaluates_the_plan_on_its_thread) {
  ASSERT_TRUE(copies[0].prepare(rows.y, rows.x).ok());
  ASSERT_TRUE(copies[0].run_unchecked().ok());
  set_breaker("copy/a.x", BreakerForce::isolate);
  std::thread([&] {
    decisions = 0;
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copies[0].run_unchecked().ok()); }), "copy/a.x")
        << "a stale plan still runs";
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copies[1](rows.y, rows.x).ok()); }), "copy/a.x");
    EXPECT_EQ(decisions, 2);
  }).join();
  set_breaker("copy/a.x", BreakerForce::close);
  EXPECT_EQ(copies[0].state(), Plan::State::current);
  EXPECT_EQ(stage.stats("copy/a.x").calls, 3u);
}

TEST_F(OutdatedPlanLifetime, a_denied_plan_does_not_run_even_if_it_was_outdated_before) {
  set_breaker("copy/a.x", BreakerForce::isolate);
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"impl:copy/a.x"}}).ok());
  EXPECT_EQ(copies[0](rows.y, rows.x).code(), Code::revoked);
  set_breaker("copy/a.x", BreakerForce::close);
  EXPECT_EQ(copies[0].state(), Plan::State::revoked) << "revoked is final";
}

TEST_F(OutdatedPlanLifetime, concurrent_changes_leave_the_state_of_the_last_one) {
  for (int round = 0; round < 50; ++round) {
    std::thread reading([&] {
      for (Plan& plan : copies) (void)plan.state();
    });
    set_breaker("copy/a.x", BreakerForce::isolate);
    set_breaker("copy/a.x", BreakerForce::close);
    set_breaker("copy/a.x", BreakerForce::isolate);
    reading.join();
    for (Plan& plan : copies) ASSERT_EQ(plan.state(), Plan::State::stale);
    set_breaker("copy/a.x", BreakerForce::close);
    for (Plan& plan : copies) ASSERT_EQ(plan.state(), Plan::State::current);
  }
}

TEST(OutdatedPlan, a_policy_that_is_published_while_a_plan_is_bound_applies_to_it) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/b.x", .kind = Kind::default_, .priority = 1});
  static Runtime* runtime = nullptr;
  runtime = &stage.runtime;
  KernelFunctions kernel;
  kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
  kernel.plan = [](void*, const opmux_call*, void**) -> int32_t {
    EXPECT_TRUE(runtime->policy().set({.deny = {"impl:copy/a.x"}}).ok());
    return OPMUX_OK;
  };
  const Registration held =
      stage.runtime.implement({.id = "copy/a.x", .vendor = "acme", .kernel = kernel}).value();
  const Rows rows;
  Plan plan = op.bind(rows.y, rows.x).value();
  EXPECT_EQ(plan.implementation(), "copy/a.x") << "decided before the policy was set";
  EXPECT_EQ(plan.state(), Plan::State::revoked);
  EXPECT_EQ(plan(rows.y, rows.x).code(), Code::revoked);
}

}  // namespace
}  // namespace opmux::test
