#include "dispatch/plan/plan_workspace.hpp"

#include <cstring>
#include <functional>
#include <string>

#include "stage.hpp"

namespace opmux::test {
namespace {

/// An implementation whose workspace is `bytes(call)` and which records what its runs were given.
struct Scratch {
  std::function<uint64_t(const opmux_call&)> bytes;
  int asked = 0, runs = 0;
  uint64_t given = 0;

  static Scratch& of(void* self) { return *static_cast<Scratch*>(self); }
  static uint64_t workspace(void* self, const opmux_call* call) {
    ++of(self).asked;
    return of(self).bytes(*call);
  }
  static int32_t run(void* self, const opmux_call* call) {
    ++of(self).runs;
    of(self).given = call->workspace_size;
    // The sanitizers report a workspace that is smaller than it says.
    if (call->workspace_size != 0) std::memset(call->workspace, 1, call->workspace_size);
    return OPMUX_OK;
  }
  KernelFunctions functions() { return {.user_data = this, .run = run, .workspace = workspace}; }
};

struct WorkspaceLifetime : testing::Test {
  void implement(std::function<uint64_t(const opmux_call&)> bytes) {
    scratch.bytes = std::move(bytes);
    held = stage.runtime
               .implement({.id = "split/acme.v1",
                           .vendor = "acme",
                           .kernel = scratch.functions(),
                           .verify = [this](const Facts&) { return ++decisions, std::string(); },
                           .verify_reads = {{}}})
               .value();
  }
  uint64_t call(int splits, double scale = 1) {
    scratch.given = 77;
    EXPECT_TRUE(op(t.y, t.x, splits, scale).ok());
    return scratch.given;
  }

  Stage stage;
  Operator op = stage.define(
      "split(out Tensor y[..., H], Tensor x[..., H], int splits = 1, float scale = 1)");
  Scratch scratch;
  Registration held;
  int decisions = 0;
  Rows t;
};

uint64_t by_splits(const opmux_call& call) {
  return static_cast<uint64_t>(call.args[2].value.i64) * 4096;
}

TEST_F(WorkspaceLifetime, is_as_large_as_the_scalars_of_each_call_ask) {
  implement(by_splits);
  for (const int splits : {1, 1, 64, 1, 16, 64, 0, 2}) {
    EXPECT_EQ(call(splits), static_cast<uint64_t>(splits) * 4096);
  }
  EXPECT_EQ(decisions, 1) << "another scalar needs no decision";
  EXPECT_EQ(stage.stats("split/acme.v1").calls, 8u);
}

TEST_F(WorkspaceLifetime, is_asked_for_once_while_nothing_changes) {
  implement(by_splits);
  call(4);
  const int before = scratch.asked;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(call(4), 4u * 4096);
  EXPECT_EQ(scratch.asked, before);
  EXPECT_EQ(call(4, 0.5), 4u * 4096);
  EXPECT_EQ(scratch.asked, before + 1) << "it could have read the scale";
}

TEST_F(WorkspaceLifetime, follows_a_float_a_left_out_scalar_and_options) {
  implement([](const opmux_call& call) {
    return static_cast<uint64_t>(call.args[3].value.f64 * 100) + call.tag +
           static_cast<uint64_t>(call.max_threads) * 1000;
  });
  const Tag tag = stage.runtime.tag("layer");
  for (int i = 0; i < 2; ++i) {
    const auto call_with = [&](const CallOptions& options, double scale) {
      EXPECT_TRUE(op.with(options)(t.y, t.x, 1, scale).ok());
      return scratch.given;
    };
    EXPECT_EQ(call_with({.max_threads = 1}, 0.5), 1050u);
    EXPECT_EQ(call_with({.max_threads = 1}, 2), 1200u);
    EXPECT_EQ(call_with({.max_threads = 2}, 2), 2200u);
    EXPECT_EQ(call_with({.tag = tag, .max_threads = 2}, 2), 2200u + tag.number);
    EXPECT_TRUE(op.with({.max_threads = 1})(t.y, t.x).ok());
    EXPECT_EQ(scratch.given, 1100u);
  }
}

TEST_F(WorkspaceLifetime, follows_the_alignment_of_a_tensor) {
  implement([](const opmux_call& call) -> uint64_t {
    const auto address = reinterpret_cast<uintptr_t>(call.args[1].value.tensor->data);
    return address % 64 == 0 ? 64 : 128;
  });
  const TensorView odd(t.in + 1, f32, {2, 8});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(op(t.y, t.x).ok());
    EXPECT_EQ(scratch.given, 64u);
    ASSERT_TRUE(op(t.y, odd).ok());
    EXPECT_EQ(scratch.given, 128u);
  }
}

TEST_F(WorkspaceLifetime, a_bound_plan_asks_again_too) {
  implement(by_splits);
  Plan plan = op.bind(t.y, t.x, 1, 1.0).value();
  EXPECT_EQ(plan.implementation(), "split/acme.v1");
  for (const int splits : {1, 16, 1, 64, 0, 3}) {
    ASSERT_TRUE(plan(t.y, t.x, splits, 1.0).ok());
    EXPECT_EQ(scratch.given, static_cast<uint64_t>(splits) * 4096);
  }
  ASSERT_TRUE(plan.prepare(t.y, t.x, 128, 1.0).ok());
  ASSERT_TRUE(plan.run_unchecked().ok());
  EXPECT_EQ(scratch.given, 128u * 4096);
  EXPECT_EQ(scratch.runs, 7);
}

TEST_F(WorkspaceLifetime, without_memory_on_a_warm_call_the_next_candidate_runs) {
  implement([](const opmux_call& call) -> uint64_t {
    return call.args[2].value.i64 == 9 ? uint64_t{1} << 50 : 64;
  });
  stage.add({.id = "split/plain.one", .kind = Kind::reference});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call(1), 64u);
    EXPECT_EQ(call(1), 64u);
    EXPECT_EQ(ran_by([&] { EXPECT_EQ(call(9), 77u); }), "split/plain.one");
  }
  Plan plan = op.bind(t.y, t.x, 1, 1.0).value();
  EXPECT_EQ(plan(t.y, t.x, 9, 1.0).code(), Code::resource);
  EXPECT_EQ(plan(t.y, t.x, 9, 1.0).code(), Code::resource);
  EXPECT_TRUE(plan(t.y, t.x, 1, 1.0).ok());
  EXPECT_EQ(scratch.given, 64u);
}

/// An implementation whose prepared state is the tag and the value of `n` that plan() was shown.
struct Shown {
  struct State {
    uint64_t tag;
    int64_t n;
  };
  static int32_t plan(void* self, const opmux_call* call, void** prepared) {
    ++*static_cast<int*>(self);
    *prepared = new State{call->tag, call->args[2].value.i64};
    return OPMUX_OK;
  }
  static void plan_free(void*, void* prepared) { delete static_cast<State*>(prepared); }
  static int32_t run(void*, const opmux_call* call) {
    const State& state = *static_cast<State*>(call->prepared);
    EXPECT_EQ(state.tag, call->tag);
    EXPECT_EQ(state.n, call->args[2].value.i64);
    return OPMUX_OK;
  }
};

TEST(PreparedTagLifetime, a_state_without_declared_reads_is_used_for_its_tag_and_scalars_only) {
  int plans = 0;
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H], int n = 0)");
  const Registration held = stage.runtime
                                .implement({.id = "copy/prep.one",
                                            .kind = Kind::default_,
                                            .kernel = {.user_data = &plans,
                                                       .run = Shown::run,
                                                       .plan = Shown::plan,
                                                       .plan_free = Shown::plan_free}})
                                .value();
  const Rows t;
  const Tag a = stage.runtime.tag("a"), b = stage.runtime.tag("b");
  for (int i = 0; i < 3; ++i) {
    for (const Tag tag : {a, b}) {
      for (const int n : {1, 2}) {
        ASSERT_TRUE(op.with({.tag = tag, .max_threads = 1})(t.y, t.x, n).ok());
      }
    }
  }
  EXPECT_EQ(plans, 4);
  EXPECT_EQ(stage.stats("copy/prep.one").calls, 12u);
}

}  // namespace
}  // namespace opmux::test
