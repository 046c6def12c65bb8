#include <array>
#include <deque>
#include <string>
#include <vector>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr int kPlans = 16;

/// Number of calls that this thread made on the slow path.
uint64_t slow_calls() { return dispatch::own_thread_block().cold_sequence; }

/// An implementation that prepares a state for each width and checks that runs get the right one.
struct Widths {
  int plans = 0, runs = 0;
  uint64_t last_tag = 0;

  static int32_t plan(void* self, const opmux_call* call, void** prepared) {
    ++static_cast<Widths*>(self)->plans;
    *prepared = reinterpret_cast<void*>(call->args[0].value.tensor->shape[1]);
    return OPMUX_OK;
  }
  static int32_t run(void* self, const opmux_call* call) {
    ++static_cast<Widths*>(self)->runs;
    static_cast<Widths*>(self)->last_tag = call->tag;
    if (call->prepared != nullptr) {
      EXPECT_EQ(reinterpret_cast<int64_t>(call->prepared), call->args[0].value.tensor->shape[1]);
    }
    return OPMUX_OK;
  }
};

struct PlanRing : testing::Test {
  void implement(bool prepares, const char* id = "copy/acme.v1", int priority = 100) {
    held.push_back(stage.runtime
                       .implement({.id = id,
                                   .vendor = "acme",
                                   .priority = priority,
                                   .kernel = {.user_data = &widths,
                                              .run = Widths::run,
                                              .plan = prepares ? Widths::plan : nullptr}})
                       .value());
  }

  Widths widths;
  Stage stage;
  Operator op = stage.define(kCopy);
  std::vector<Registration> held;
};

TEST_F(PlanRing, sixteen_prepared_shapes_stay_on_the_fast_path_in_any_order) {
  implement(true);
  std::deque<Rows> rows;
  for (int i = 0; i < kPlans; ++i) rows.emplace_back(2, i + 1);
  for (const Rows& t : rows) ASSERT_TRUE(op(t.y, t.x).ok());
  const uint64_t before = slow_calls();
  for (int i = 0; i < 10 * kPlans; ++i) {
    const Rows& t = rows[static_cast<size_t>(i % kPlans)];
    ASSERT_TRUE(op(t.y, t.x).ok());
  }
  for (int i = 0; i < 1000; ++i) {
    const Rows& t = rows[static_cast<size_t>(i * 7919 % 31 % kPlans)];
    ASSERT_TRUE(op(t.y, t.x).ok());
  }
  EXPECT_EQ(slow_calls(), before);
  EXPECT_EQ(widths.plans, kPlans);
  EXPECT_EQ(stage.stats("copy/acme.v1").calls, 11u * kPlans + 1000);
}

/// The plan that this thread's last call of an operator ran.
const dispatch::CachedPlan* last_plan(const Operator& op) {
  const dispatch::ThreadBlock& block = dispatch::own_thread_block();
  return block.recent[op.slot().number];
}

TEST_F(PlanRing, a_plan_is_followed_by_the_one_that_ran_after_it) {
  implement(true);
  std::deque<Rows> rows;
  for (int i = 0; i < kPlans; ++i) rows.emplace_back(2, i + 1);
  for (const Rows& t : rows) ASSERT_TRUE(op(t.y, t.x).ok());
  // Five of the sixteen in turn, in another order than that of their first calls.
  constexpr std::array<size_t, 5> kOrder{3, 11, 0, 14, 7};
  const dispatch::CachedPlan* before = nullptr;
  for (int i = 0; i < 20; ++i) {
    const Rows& t = rows[kOrder[static_cast<size_t>(i) % kOrder.size()]];
    ASSERT_TRUE(op(t.y, t.x).ok());
    if (before != nullptr) {
      EXPECT_EQ(before->follower, last_plan(op)) << i;
    }
    before = last_plan(op);
  }
}

TEST_F(PlanRing, views_made_for_each_call_find_their_plan) {
  implement(true);
  float in[2 * kPlans] = {}, out[2 * kPlans] = {};
  const auto call = [&](int64_t width) {
    return op(TensorView(out, f32, {2, width}), TensorView(in, f32, {2, width})).ok();
  };
  for (int i = 0; i < kPlans; ++i) ASSERT_TRUE(call(i + 1));
  const uint64_t before = slow_calls();
  for (int i = 0; i < 10 * kPlans; ++i) ASSERT_TRUE(call(i % kPlans + 1));
  EXPECT_EQ(slow_calls(), before);
}

TEST_F(PlanRing, a_plan_takes_any_tag_if_nothing_depends_on_it) {
  implement(false);
  const Rows t;
  const Tag first = stage.runtime.tag("layer.0");
  ASSERT_TRUE(op.with({.tag = first, .max_threads = 1})(t.y, t.x).ok());
  const uint64_t before = slow_calls();
  for (int i = 1; i < 100; ++i) {
    const Tag tag = stage.runtime.tag("layer." + std::to_string(i));
    ASSERT_TRUE(op.with({.tag = tag, .max_threads = 1})(t.y, t.x).ok());
    ASSERT_EQ(widths.last_tag, tag.number);
  }
  EXPECT_EQ(slow_calls(), before);
}

TEST_F(PlanRing, a_tag_that_a_rule_reads_chooses_its_implementation_on_warm_calls) {
  implement(false);
  implement(false, "copy/acme.v2", 10);
  const Rows t;
  const Tag a = stage.runtime.tag("a"), b = stage.runtime.tag("b");
  Policy policy;
  policy.rules.push_back(
      {.op = "copy", .when = Condition::tag(b.number), .require = {"copy/acme.v2"}});
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(op.with({.tag = a, .max_threads = 1})(t.y, t.x).ok());
    ASSERT_TRUE(op.with({.tag = b, .max_threads = 1})(t.y, t.x).ok());
  }
  EXPECT_EQ(stage.stats("copy/acme.v1").calls, 10u);
  EXPECT_EQ(stage.stats("copy/acme.v2").calls, 10u);
}

}  // namespace
}  // namespace opmux::test
