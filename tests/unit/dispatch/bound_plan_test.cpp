#include "stage.hpp"

#include <barrier>
#include <thread>

namespace opmux::test {
namespace {

constexpr const char* kNormOfThree =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], int n = 0)";

struct BoundPlanTest : testing::Test, Stage {
  BoundPlanTest() : op(define(kNormOfThree)) {
    add({.id = "norm/fast.one",
         .kind = Kind::default_,
         .caps = Caps{}.multiple_of("H", 4),
         .flags = OPMUX_IMPL_DETERMINISTIC});
    add({.id = "norm/plain.one",
         .kind = Kind::reference,
         .flags = OPMUX_IMPL_CAPTURE_SAFE | OPMUX_IMPL_DETERMINISTIC});
  }
  Plan bind() { return op.bind(rows.y, rows.x).value(); }
  Operator op;
  const Rows rows;
};

TEST_F(BoundPlanTest, runs_what_was_decided_for_arguments_like_these) {
  Plan plan = bind();
  EXPECT_EQ(plan.implementation(), "norm/fast.one");
  EXPECT_EQ(plan.state(), Plan::State::current);
  EXPECT_GT(plan.generation(), 0u);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); }), "norm/fast.one");
  const Rows other(5, 8);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(other.y, other.x).ok()); }), "norm/fast.one");
  EXPECT_EQ(stats("norm/fast.one").calls, 2u);
}

TEST_F(BoundPlanTest, refuses_what_the_decision_was_not_made_for) {
  Plan plan = bind();
  const Rows odd(2, 6);
  EXPECT_EQ(plan(odd.y, odd.x).code(), Code::outside_plan) << "H % 4";
  EXPECT_EQ(plan(rows.y, rows.x, none, 3).code(), Code::outside_plan) << "another call site";
  EXPECT_EQ(plan(rows.y, TensorView(rows.in, bf16, {2, 8})).code(), Code::outside_plan);
  EXPECT_EQ(plan(rows.y, TensorView(rows.in, f32, {3, 8})).code(), Code::invalid_argument);
  EXPECT_EQ(
      plan(TensorView(const_cast<float*>(rows.out), f32, {0, 8}), TensorView(rows.in, f32, {0, 8}))
          .code(),
      Code::outside_plan);
  EXPECT_EQ(kernel("norm/fast.one").runs, 0u);
}

TEST_F(BoundPlanTest, is_stale_if_another_would_be_chosen_and_still_runs) {
  Plan plan = bind();
  ASSERT_TRUE(runtime.policy().set({.prefer = {"reference"}}).ok());
  EXPECT_EQ(plan.state(), Plan::State::stale);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); }), "norm/fast.one");
  ASSERT_TRUE(runtime.policy().reset().ok());
  EXPECT_EQ(plan.state(), Plan::State::current);
  ASSERT_TRUE(runtime.policy().set({.prefer = {"reference"}}).ok());
  const uint64_t before = plan.generation();
  ASSERT_TRUE(plan.refresh().ok());
  EXPECT_EQ(plan.implementation(), "norm/plain.one");
  EXPECT_EQ(plan.state(), Plan::State::current);
  EXPECT_GT(plan.generation(), before);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); }), "norm/plain.one");
}

TEST_F(BoundPlanTest, is_revoked_permanently_by_a_deny) {
  Plan plan = bind();
  ASSERT_TRUE(plan.prepare(rows.y, rows.x).ok());
  ASSERT_TRUE(runtime.policy().set({.deny = {"impl:norm/fast.one"}}).ok());
  EXPECT_EQ(plan.state(), Plan::State::revoked);
  EXPECT_EQ(plan(rows.y, rows.x).code(), Code::revoked);
  EXPECT_EQ(plan.run_unchecked().reason(), "plan.revoked");
  EXPECT_EQ(plan.prepare(TensorView(rows.in, bf16, {1, 8}), rows.x).code(), Code::revoked);
  EXPECT_EQ(kernel("norm/fast.one").runs, 0u);
  ASSERT_TRUE(runtime.policy().reset().ok());
  EXPECT_EQ(plan.state(), Plan::State::revoked) << "revoked until it is refreshed";
  ASSERT_TRUE(plan.refresh().ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); }), "norm/fast.one");
}

TEST_F(BoundPlanTest, is_revoked_by_withdrawal_and_by_a_switch) {
  Plan withdrawn = bind();
  ASSERT_TRUE(kernel("norm/fast.one").registration.withdraw().ok());
  EXPECT_EQ(withdrawn(rows.y, rows.x).code(), Code::revoked);
  ASSERT_TRUE(withdrawn.refresh().ok());
  EXPECT_EQ(withdrawn.implementation(), "norm/plain.one");
  ASSERT_TRUE(runtime.plugins().enable_backend("plain", false).ok());
  EXPECT_EQ(withdrawn(rows.y, rows.x).code(), Code::revoked);
  EXPECT_EQ(withdrawn.refresh().code(), Code::no_candidate);
  EXPECT_EQ(withdrawn.implementation(), "norm/plain.one") << "still the withdrawn one";
  EXPECT_EQ(withdrawn(rows.y, rows.x).code(), Code::revoked);
}

TEST_F(BoundPlanTest, keeps_the_scope_it_was_bound_in) {
  std::optional<Plan> plan;
  {
    const PolicyScope scope(runtime, {.require = {"reference"}});
    plan.emplace(bind());
  }
  EXPECT_EQ(plan->implementation(), "norm/plain.one");
  ASSERT_TRUE(runtime.policy().set({.prefer = {"default"}}).ok());
  EXPECT_EQ(plan->state(), Plan::State::current) << "it is the only candidate under the scope";
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE((*plan)(rows.y, rows.x).ok()); }), "norm/plain.one");
}

TEST_F(BoundPlanTest, for_capture_takes_only_capture_safe_implementations) {
  Plan plan = op.bind_for_capture(rows.y, rows.x).value();
  EXPECT_EQ(plan.implementation(), "norm/plain.one");
  ASSERT_TRUE(runtime.policy().set({.deny = {"reference"}}).ok() ||
              runtime.policy().set({.rules = {{.op = "norm", .deny = {"reference"}}}}).ok());
  EXPECT_EQ(plan(rows.y, rows.x).code(), Code::revoked) << "a revoked plan never runs";
  EXPECT_EQ(op.bind_for_capture(rows.y, rows.x).error().code(), Code::no_candidate);
}

TEST_F(BoundPlanTest, binding_checks_arguments_and_their_memory) {
  EXPECT_EQ(op.bind(rows.y, TensorView(rows.in, f32, {3, 8})).error().code(),
            Code::invalid_argument);
  EXPECT_EQ(op.bind(rows.y, TensorView(rows.out + 4, f32, {2, 8})).error().reason(),
            "schema.overlap");
}

TEST_F(BoundPlanTest, an_outcome_that_is_not_ok_is_returned_and_counted) {
  Plan plan = bind();
  kernel("norm/fast.one").body = [](CallFrame& call) {
    return call.end(Outcome::declined, "not today");
  };
  const Status status = plan(rows.y, rows.x);
  EXPECT_EQ(status.code(), Code::declined);
  EXPECT_EQ(status.message(), "norm/fast.one declined: not today");
  EXPECT_EQ(stats("norm/fast.one").declined, 1u);
  EXPECT_EQ(stats("norm/fast.one").calls, 0u);
  EXPECT_EQ(kernel("norm/plain.one").runs, 0u);
}

TEST_F(BoundPlanTest, run_unchecked_follows_the_views_that_were_prepared) {
  float* seen = nullptr;
  kernel("norm/fast.one").body = [&](CallFrame& call) {
    seen = call.data<float>(1);
    return Outcome::ok;
  };
  Plan plan = bind();
  float first[16] = {}, second[16] = {};
  TensorView x(first, f32, {2, 8});
  ASSERT_TRUE(plan.prepare(rows.y, x).ok());
  ASSERT_TRUE(plan.run_unchecked().ok());
  EXPECT_EQ(seen, first);
  x.set_data(second);
  ASSERT_TRUE(plan.run_unchecked().ok());
  EXPECT_EQ(seen, second);
  EXPECT_EQ(plan.prepare(rows.y, TensorView(first, f32, {9})).code(), Code::invalid_argument);
}

TEST_F(BoundPlanTest, words_and_lists_cannot_be_bound) {
  const Operator pick = define("pick(out Tensor y[H], Tensor x[H], str mode = \"a\")");
  add({.id = "pick/one.x", .kind = Kind::default_});
  const TensorView y(const_cast<float*>(rows.out), f32, {8}), x(rows.in, f32, {8});
  EXPECT_EQ(pick.bind(y, x, "b").error().code(), Code::unsupported);
  EXPECT_TRUE(pick(y, x, "b").ok());
}

TEST_F(BoundPlanTest, a_plan_moves_and_works_in_a_thread_that_never_called) {
  Plan plan = bind();
  Plan moved = std::move(plan);
  std::thread([&] {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(moved(rows.y, rows.x).ok()); }), "norm/fast.one");
  }).join();
  plan = std::move(moved);
  EXPECT_TRUE(plan(rows.y, rows.x).ok());
}

TEST_F(BoundPlanTest, withdrawing_waits_for_a_plan_that_runs) {
  Plan plan = bind();
  std::barrier step(2);
  std::atomic<bool> left{false};
  kernel("norm/fast.one").body = [&](CallFrame&) {
    step.arrive_and_wait();
    step.arrive_and_wait();
    left.store(true);
    return Outcome::ok;
  };
  std::thread inside([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); });
  step.arrive_and_wait();
  std::thread leave([&] { step.arrive_and_wait(); });
  EXPECT_TRUE(kernel("norm/fast.one").registration.withdraw().ok());
  EXPECT_TRUE(left.load());
  inside.join();
  leave.join();
}

}  // namespace
}  // namespace opmux::test
