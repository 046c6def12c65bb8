#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kBump = "bump(inout Tensor x[*])";

/// Doubles the first element, then returns `outcome`.
std::function<Outcome(CallFrame&)> doubles(Outcome outcome) {
  return [outcome](CallFrame& call) {
    *call.data<float>(0) *= 2;
    return outcome;
  };
}

struct Bump : Stage {
  explicit Bump(uint32_t flags, std::function<Outcome(CallFrame&)> first) : op(define(kBump)) {
    add({.id = "bump/fast.one", .kind = Kind::default_, .run = std::move(first), .flags = flags});
    add({.id = "bump/plain.one", .kind = Kind::reference, .run = doubles(Outcome::ok)});
  }
  Operator op;
};

TEST(Defects, fallback_reruns_an_in_place_operator_on_corrupted_inputs) {
  for (const Outcome ending : {Outcome::failed, Outcome::resource}) {
    Bump stage(0, doubles(Outcome::ok));
    float value = 1;
    const TensorView x(&value, f32, {1});
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(stage.op(x).ok()); }), "bump/fast.one");
    stage.kernel("bump/fast.one").body = doubles(ending);
    // First on the cached path, then on the slow path with another shape.
    for (const TensorView& view : {x, TensorView(&value, f32, {1, 1})}) {
      value = 1;
      const std::string ran =
          ran_by([&] { EXPECT_EQ(stage.op(view).code(), static_cast<Code>(ending)); });
      EXPECT_EQ(ran, "bump/fast.one");
      EXPECT_EQ(value, 2);
    }
  }
}

TEST(Defects, an_in_place_operator_that_wrote_nothing_has_no_fallback) {
  Bump stage(OPMUX_IMPL_ATOMIC_OUTPUTS, [](CallFrame&) { return Outcome::failed; });
  float value = 1;
  const TensorView x(&value, f32, {1});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(stage.op(x).ok()); }), "bump/fast.one bump/plain.one");
  EXPECT_EQ(value, 2);
  // By contract, a decline leaves the arguments untouched.
  Bump declining(0, [](CallFrame&) { return Outcome::declined; });
  value = 1;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(declining.op(x).ok()); }), "bump/fast.one bump/plain.one");
  EXPECT_EQ(value, 2);
}

TEST(Defects, fallback_reruns_an_operator_whose_output_overlaps_its_input) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[H], Tensor x[H])");
  stage.add({.id = "copy/fast.one", .kind = Kind::default_, .run = doubles(Outcome::failed)});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  float memory[12] = {1};
  const TensorView low(memory, f32, {8}), high(memory + 4, f32, {8}), apart(memory + 8, f32, {4});
  const TensorView four(memory, f32, {4});
  EXPECT_EQ(ran_by([&] { EXPECT_EQ(op(low, high).code(), Code::failed); }), "copy/fast.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(four, apart).ok()); }), "copy/fast.one copy/plain.one");
}

TEST(Defects, fallback_ignores_deny_rules) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H])");
  RecordingKernel& fast = stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/middle.one", .kind = Kind::vendor, .vendor = "acme"});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"vendor:acme"}}).ok());
  const auto run = [&] { return ran_by([&] { (void)op(rows.y, rows.x); }); };
  EXPECT_EQ(run(), "copy/fast.one");
  fast.body = [](CallFrame&) { return Outcome::failed; };
  EXPECT_EQ(run(), "copy/fast.one copy/plain.one");
  {
    const PolicyScope scope(stage.runtime, {.deny = {"reference"}});
    CallReport report;
    EXPECT_EQ(op.with(report)(rows.y, rows.x).code(), Code::failed);
    EXPECT_EQ(report.implementation, "copy/fast.one");
    EXPECT_EQ(run(), "copy/fast.one");
  }
  ASSERT_TRUE(stage.runtime.policy()
                  .set({.rules = {{.op = "copy", .require = {"impl:copy/fast.one"}}}})
                  .ok());
  EXPECT_EQ(run(), "copy/fast.one");
  EXPECT_EQ(stage.kernel("copy/middle.one").runs, 0u);
}

TEST(Defects, a_failure_counts_twice) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H])");
  RecordingKernel& fast = stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  auto plan = op.bind(rows.y, rows.x).value();
  ASSERT_TRUE(op(rows.y, rows.x).ok());
  fast.body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }),
              "copy/fast.one copy/plain.one");
    EXPECT_EQ(stage.stats("copy/fast.one").failed, static_cast<uint64_t>(i));
  }
  EXPECT_EQ(plan(rows.y, rows.x).code(), Code::failed);
  EXPECT_EQ(stage.stats("copy/fast.one").failed, 6u);
  EXPECT_EQ(stage.stats("copy/fast.one").calls, 1u) << "a failure is not also a call";
  EXPECT_EQ(stage.stats("copy/plain.one").calls, 5u);
  EXPECT_EQ(stage.stats("copy/plain.one").stood_in, 5u);
}

int32_t returns(void* number, const opmux_call*) { return *static_cast<int32_t*>(number); }

TEST(Defects, a_kernel_that_returns_nothing_counts_as_failed) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H])");
  int32_t number = 0;
  Registration held = stage.runtime
                          .implement({.id = "copy/silent.one",
                                      .kind = Kind::default_,
                                      .kernel = {.user_data = &number, .run = returns}})
                          .value();
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  // Returns ok without an error text: it ran, and there was no fallback.
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "");
  EXPECT_EQ(stage.stats("copy/silent.one").calls, 1u);
  EXPECT_EQ(stage.stats("copy/silent.one").failed, 0u);
  // Undefined outcome values count as failures and do nothing worse.
  uint64_t failures = 0;
  for (const int32_t odd : {42, -1, 6, INT32_MIN, INT32_MAX}) {
    number = odd;
    CallReport report;
    EXPECT_TRUE(op.with(report)(rows.y, rows.x).ok());
    EXPECT_EQ(report.implementation, "copy/plain.one");
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
    failures += 2;
    EXPECT_EQ(stage.stats("copy/silent.one").failed, failures) << odd;
    EXPECT_TRUE(stage.runtime.health().force_breaker("copy/silent.one", BreakerForce::close).ok());
  }
  number = 0;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "");
}

}  // namespace
}  // namespace opmux::test
