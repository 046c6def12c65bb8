#include "dispatch/call/transform.hpp"

#include "schema/dtype.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTwice = "twice(out Tensor y[N, H], Tensor x[N, H], Tensor? w[H])";

/// y = 2 x for any strides.
Outcome doubled(CallFrame& call) {
  const TensorView y = call.tensor(0), x = call.tensor(1);
  for (int64_t n = 0; n < x.dim(0); ++n) {
    for (int64_t h = 0; h < x.dim(1); ++h) {
      static_cast<float*>(y.data())[n * y.stride(0) + h * y.stride(1)] =
          2 * static_cast<float*>(x.data())[n * x.stride(0) + h * x.stride(1)];
    }
  }
  return Outcome::ok;
}

/// twice/fast.x takes only row-major f32; twice/slow.x takes everything and has a lower priority.
struct TransformTest : testing::Test {
  TransformTest() {
    twice = stage.define(kTwice);
    stage.add({.id = "twice/fast.x",
               .kind = Kind::default_,
               .priority = 200,
               .caps = Caps{}.dtypes({f32}).contiguous(),
               .run = [this](CallFrame& call) {
                 given = {call.tensor(0), call.tensor(1)};
                 return doubled(call);
               }});
    stage.add({.id = "twice/slow.x", .kind = Kind::default_, .priority = 100});
    for (int i = 0; i < 8; ++i) {
      floats[i] = static_cast<float>(i);
      shorts[i] = schema::to_bf16(static_cast<float>(i));
    }
  }

  std::string ran(const TensorView& y, const TensorView& x) {
    CallReport report;
    const Status status = twice.with(report)(y, x);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return report.implementation + " " + report.transforms;
  }
  void allow(std::vector<std::string> words) {
    ASSERT_TRUE(stage.runtime.policy().set({.transforms = std::move(words)}).ok());
  }
  static TensorView columns(void* data, DType dtype) {
    const std::array<int64_t, 2> shape{2, 4}, strides{1, 2};
    return {data, dtype, shape, strides, {}};
  }

  Stage stage;
  Operator twice = stage.runtime.op("rms_norm").value();
  std::vector<TensorView> given;
  std::array<float, 8> floats{}, out{};
  std::array<uint16_t, 8> shorts{}, short_out{};
  const TensorView f_y{out.data(), f32, {2, 4}}, f_x{floats.data(), f32, {2, 4}};
  const TensorView b_y{short_out.data(), bf16, {2, 4}}, b_x{shorts.data(), bf16, {2, 4}};
};

TEST_F(TransformTest, nothing_is_transformed_unless_a_policy_allows_it) {
  EXPECT_EQ(ran(f_y, f_x), "twice/fast.x ");
  EXPECT_EQ(ran(f_y, columns(floats.data(), f32)), "twice/slow.x ");
  EXPECT_EQ(ran(b_y, b_x), "twice/slow.x ");
}

TEST_F(TransformTest, a_row_major_copy_makes_strides_fit_both_ways) {
  allow({"contiguous"});
  EXPECT_EQ(ran(columns(out.data(), f32), columns(floats.data(), f32)),
            "twice/fast.x contiguous(y, x)");
  ASSERT_EQ(given.size(), 2u);
  EXPECT_NE(given[1].data(), floats.data());
  EXPECT_EQ(given[1].strides()[0], 4);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i], 2 * floats[i]);
  EXPECT_EQ(ran(f_y, columns(floats.data(), f32)), "twice/fast.x contiguous(x)");
  EXPECT_EQ(out[1], 2 * floats[2]);
  EXPECT_EQ(ran(f_y, f_x), "twice/fast.x ");
  EXPECT_EQ(ran(b_y, b_x), "twice/slow.x ");
}

TEST_F(TransformTest, short_floats_go_by_way_of_f32_and_come_back_rounded) {
  allow({"widen"});
  EXPECT_EQ(ran(b_y, b_x), "twice/fast.x widen(y, x)");
  EXPECT_EQ(given[0].dtype(), f32);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(schema::from_bf16(short_out[i]), 2 * static_cast<float>(i));
  }
  EXPECT_EQ(ran(b_y, columns(shorts.data(), bf16)), "twice/fast.x widen(y, x)");
  EXPECT_EQ(schema::from_bf16(short_out[1]), 4.0f);
  const TensorView halves{shorts.data(), f16, {2, 4}};
  EXPECT_EQ(ran({short_out.data(), f16, {2, 4}}, halves), "twice/fast.x widen(y, x)");
  const std::array<double, 8> doubles{};
  EXPECT_EQ(ran(f_y, {doubles.data(), f64, {2, 4}}), "twice/slow.x ");
}

TEST_F(TransformTest, a_warm_call_is_transformed_like_the_first) {
  allow({"widen"});
  for (int i = 0; i < 4; ++i) {
    short_out.fill(0);
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(twice(b_y, b_x).ok()); }), "twice/fast.x");
    EXPECT_EQ(schema::from_bf16(short_out[3]), 6.0f);
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(twice(f_y, f_x).ok()); }), "twice/fast.x");
    EXPECT_EQ(given[1].data(), floats.data());
  }
}

TEST_F(TransformTest, explain_says_what_would_be_done_and_what_it_costs) {
  allow({"contiguous", "widen"});
  const Explanation wide = twice.explain(b_y, b_x);
  EXPECT_EQ(wide.chosen, "twice/fast.x");
  EXPECT_EQ(candidate(wide, "twice/fast.x").transforms, "widen(y, x)");
  EXPECT_EQ(candidate(wide, "twice/fast.x").score, 180);
  EXPECT_THAT(candidate(wide, "twice/fast.x").reason, HasSubstr("by way of widen(y, x)"));
  const Explanation copied = twice.explain(f_y, columns(floats.data(), f32));
  EXPECT_EQ(candidate(copied, "twice/fast.x").score, 195);
  EXPECT_EQ(candidate(copied, "twice/slow.x").transforms, "");
}

TEST_F(TransformTest, its_cost_may_make_another_one_the_better_choice) {
  stage.add({.id = "twice/near.x", .kind = Kind::default_, .priority = 190});
  allow({"widen"});
  EXPECT_EQ(ran(b_y, b_x), "twice/near.x ");
  EXPECT_EQ(ran(f_y, f_x), "twice/fast.x ");
}

TEST_F(TransformTest, rules_allow_it_for_some_calls_and_stronger_ones_take_it_back) {
  Rule rule{.op = "twice", .when = Condition::dim("N", Compare::less, 100)};
  rule.transforms = {"widen"};
  ASSERT_TRUE(stage.runtime.policy().set({.rules = {rule}}).ok());
  EXPECT_EQ(ran(b_y, b_x), "twice/fast.x widen(y, x)");
  {
    const PolicyScope off(stage.runtime, {.transforms = {"none"}});
    EXPECT_EQ(ran(b_y, b_x), "twice/slow.x ");
  }
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\ndefaults: {transforms: [contiguous]}\nrules:\n"
                        "  - {op: twice, transforms: [none], rank: 90}\n")
                  .ok());
  ASSERT_TRUE(stage.runtime.policy().reset().ok());
  EXPECT_EQ(ran(f_y, columns(floats.data(), f32)), "twice/slow.x ");
  EXPECT_EQ(setting(stage.runtime, "transforms"), "contiguous <- transforms (policy)");
  EXPECT_EQ(stage.runtime.policy().set({.transforms = {"narrow"}}).reason(), "policy.transforms");
  EXPECT_EQ(stage.runtime.policy().set({.transforms = {"none", "widen"}}).reason(),
            "policy.transforms");
}

TEST_F(TransformTest, inout_tensors_are_never_copied) {
  const Operator bump = stage.define("bump(inout Tensor x[N, H])");
  stage.add({.id = "bump/fast.x",
             .kind = Kind::default_,
             .priority = 200,
             .caps = Caps{}.dtypes({f32}).contiguous()});
  stage.add({.id = "bump/slow.x", .kind = Kind::default_, .priority = 100});
  allow({"contiguous", "widen"});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(bump(columns(floats.data(), f32)).ok()); }), "bump/slow.x");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(bump(b_x).ok()); }), "bump/slow.x");
}

TEST_F(TransformTest, a_verifier_sees_the_tensors_that_its_kernel_would_get) {
  stage.add({.id = "twice/picky.x",
             .kind = Kind::default_,
             .priority = 300,
             .caps = Caps{}.contiguous(),
             .verify =
                 [](const Facts& facts) {
                   const auto type = facts.get(OPMUX_FACT_DTYPE, "x");
                   return type == int64_t{f32.packed()} ? "" : std::string("x must be f32");
                 },
             .verify_reads = {{{OPMUX_FACT_DTYPE, "x"}}}});
  allow({"contiguous", "widen"});
  EXPECT_EQ(ran(f_y, columns(floats.data(), f32)), "twice/picky.x contiguous(x)");
  // Capabilities request a cast, verifiers do not.
  EXPECT_EQ(ran(b_y, b_x), "twice/fast.x widen(y, x)");
}

TEST_F(TransformTest, after_a_failure_the_fallback_writes_the_outputs) {
  stage.kernel("twice/fast.x").body = [](CallFrame& call) {
    static_cast<float*>(call.tensor(0).data())[0] = 77;
    return Outcome::failed;
  };
  stage.kernel("twice/slow.x").body = [](CallFrame&) { return Outcome::ok; };
  allow({"widen"});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(twice(b_y, b_x).ok()); }), "twice/fast.x twice/slow.x");
  EXPECT_EQ(short_out[0], 0);
}

TEST_F(TransformTest, a_bound_plan_takes_what_needs_no_transforms) {
  allow({"widen"});
  const Plan plan = twice.bind(b_y, b_x).value();
  EXPECT_EQ(plan.implementation(), "twice/slow.x");
  EXPECT_EQ(plan.state(), Plan::State::current);
  allow({"contiguous", "widen"});
  EXPECT_EQ(plan.state(), Plan::State::current);
  const PolicyScope only(stage.runtime, {.require = {"twice/fast.x"}});
  EXPECT_EQ(twice.bind(b_y, b_x).error().reason(), "plan.transforms");
}

}  // namespace
}  // namespace opmux::test
