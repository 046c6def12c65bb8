#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kNest = "nest(out Tensor y[..., H], Tensor x[..., H], int depth = 0)";

struct Nest : Stage {
  Nest() : op(define(kNest)) {
    add({.id = "nest/one.x", .kind = Kind::reference, .run = [this](CallFrame& call) {
           const int64_t depth = call.i64(2);
           deepest = std::max(deepest, depth);
           if (depth >= wanted) return Outcome::ok;
           inner = op(call.tensor(0), call.tensor(1), depth + 1);
           // The frame belongs to this call, whatever ran inside it.
           EXPECT_EQ(call.i64(2), depth);
           return inner.ok() ? Outcome::ok : call.end(Outcome::failed, inner.message());
         }});
  }
  Operator op;
  Status inner;
  int64_t deepest = 0, wanted = 0;
};

TEST(Nesting, calls_go_eight_deep_and_the_ninth_is_refused) {
  Nest stage;
  const Rows rows;
  for (int round = 0; round < 3; ++round) {
    stage.wanted = 7;
    stage.deepest = 0;
    EXPECT_TRUE(stage.op(rows.y, rows.x, 0).ok());
    EXPECT_EQ(stage.deepest, 7);
  }
  stage.wanted = 8;
  stage.deepest = 0;
  const Status status = stage.op(rows.y, rows.x, 0);
  EXPECT_EQ(status.code(), Code::failed);
  EXPECT_NE(status.message().find("nested 9 levels deep"), std::string_view::npos)
      << status.message();
  EXPECT_EQ(stage.deepest, 7);
  stage.wanted = 0;
  EXPECT_TRUE(stage.op(rows.y, rows.x, 0).ok()) << "all levels are free again";
}

TEST(Nesting, bound_plans_binding_and_explaining_count_too) {
  Stage stage;
  const Operator op = stage.define(kNest);
  const Rows rows;
  Plan* plan = nullptr;
  Status refused, bound;
  Explanation why;
  stage.add({.id = "nest/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               const int64_t depth = call.i64(2);
               if (depth < 7) {
                 return static_cast<Outcome>(op(call.tensor(0), call.tensor(1), depth + 1).code());
               }
               refused = (*plan)(rows.y, rows.x, 7);
               bound = op.bind(rows.y, rows.x, 7).error();
               why = op.explain(rows.y, rows.x, 7);
               return Outcome::ok;
             }});
  Plan made = op.bind(rows.y, rows.x, 7).value();
  plan = &made;
  EXPECT_TRUE(op(rows.y, rows.x, 0).ok());
  EXPECT_EQ(refused.reason(), "call.too_deep");
  EXPECT_EQ(bound.reason(), "call.too_deep");
  EXPECT_NE(why.note.find("call.too_deep"), std::string::npos);
}

TEST(Nesting, a_decision_inside_a_verifier_leaves_the_outer_one_alone) {
  Stage stage;
  const Operator outer = stage.define(kNest);
  const Operator inner = stage.define(kCopy);
  const Rows rows;
  for (const char* id : {"copy/a.x", "copy/b.x", "copy/c.x"}) stage.add({.id = id});
  stage.add({.id = "nest/one.x", .priority = 300, .caps = Caps{}.at_least("H", 1 << 20)});
  std::string inside;
  stage.add({.id = "nest/two.x", .priority = 200, .verify = [&](const Facts&) {
               inside = ran_by([&] { EXPECT_TRUE(inner(rows.y, rows.x).ok()); });
               return std::string("not now");
             }});
  stage.add({.id = "nest/three.x", .priority = 100});
  CallReport report;
  EXPECT_TRUE(outer.with(report)(rows.y, rows.x).ok());
  EXPECT_EQ(inside, "copy/a.x");
  EXPECT_EQ(report.implementation, "nest/three.x");
  EXPECT_TRUE(outer(rows.y, rows.x).ok());
  EXPECT_EQ(stage.stats("nest/three.x").calls, 2u);
}

TEST(Nesting, a_plan_runs_inside_a_call_and_a_call_inside_a_plan) {
  Stage stage;
  const Operator outer = stage.define(kNest);
  const Operator inner = stage.define("inner(out Tensor y[..., H], Tensor x[..., H])");
  const Rows rows;
  stage.add({.id = "inner/one.x", .kind = Kind::default_});
  Plan plan = inner.bind(rows.y, rows.x).value();
  stage.add({.id = "nest/one.x", .kind = Kind::default_, .run = [&](CallFrame&) {
               EXPECT_TRUE(inner(rows.y, rows.x).ok());
               return static_cast<Outcome>(plan(rows.y, rows.x).code());
             }});
  Plan outer_plan = outer.bind(rows.y, rows.x).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(outer(rows.y, rows.x).ok()); }),
              "nest/one.x inner/one.x inner/one.x");
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(outer_plan(rows.y, rows.x).ok()); }),
              "nest/one.x inner/one.x inner/one.x");
  }
}

TEST(Nesting, a_nested_call_has_a_separate_workspace) {
  Stage stage;
  const Operator op = stage.define(kNest);
  struct State {
    const Operator* op;
    int good = 0;
  } state{&op};
  const auto run = [](void* self, const opmux_call* call) -> int32_t {
    auto& mine = *static_cast<State*>(self);
    const CallFrame frame(*call);
    auto* words = static_cast<int64_t*>(call->workspace);
    if (reinterpret_cast<uintptr_t>(words) % 64 != 0 || call->workspace_size != 1024) return 3;
    for (int i = 0; i < 128; ++i) words[i] = frame.i64(2);
    if (frame.i64(2) < 3) {
      const Status inner = (*mine.op)(frame.tensor(0), frame.tensor(1), frame.i64(2) + 1);
      if (!inner.ok()) return OPMUX_FAILED;
    }
    for (int i = 0; i < 128; ++i) {
      if (words[i] != frame.i64(2)) return OPMUX_FAILED;
    }
    ++mine.good;
    return OPMUX_OK;
  };
  Registration held =
      stage.runtime
          .implement(
              {.id = "nest/work.one",
               .kind = Kind::default_,
               .kernel = {.user_data = &state,
                          .run = run,
                          .workspace = [](void*, const opmux_call*) -> uint64_t { return 1024; }}})
          .value();
  const Rows rows;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(op(rows.y, rows.x, 0).ok());
  EXPECT_EQ(state.good, 12);
  Plan plan = op.bind(rows.y, rows.x, 3).value();
  EXPECT_TRUE(plan(rows.y, rows.x, 3).ok());
}

TEST(Workspace, grows_with_the_arguments_and_may_be_refused) {
  Stage stage;
  const Operator op = stage.define(kNest);
  static uint64_t wanted;
  static uint64_t given;
  Registration held =
      stage.runtime
          .implement({.id = "nest/work.one",
                      .kind = Kind::default_,
                      .kernel = {.run = [](void*, const opmux_call* call) -> int32_t {
                                   given = call->workspace_size;
                                   std::memset(call->workspace, 1, given);
                                   return OPMUX_OK;
                                 },
                                 .workspace = [](void*, const opmux_call* call) -> uint64_t {
                                   return wanted * static_cast<uint64_t>(
                                                       call->args[1].value.tensor->shape[0]);
                                 }}})
          .value();
  wanted = 4096;
  for (const int64_t rows : {1, 9, 2, 9, 1}) {
    const Rows t(rows, 8);
    ASSERT_TRUE(op(t.y, t.x).ok());
    EXPECT_EQ(given, 4096u * static_cast<uint64_t>(rows));
  }
  wanted = uint64_t{1} << 60;
  const Rows t(3, 8);
  EXPECT_EQ(op(t.y, t.x).code(), Code::resource);
  EXPECT_EQ(op.bind(t.y, t.x).error().reason(), "plan.workspace");
}

TEST(Workspace, a_kernel_that_wants_none_gets_none_on_a_thread_that_never_had_one) {
  Stage stage;
  const Operator op = stage.define(kNest);
  static std::atomic<int> without;
  without = 0;
  Registration held =
      stage.runtime
          .implement(
              {.id = "nest/thrifty.one",
               .kind = Kind::default_,
               .kernel = {.run = [](void*, const opmux_call* call) -> int32_t {
                            without += call->workspace == nullptr ? 1 : 0;
                            return OPMUX_OK;
                          },
                          .workspace = [](void*, const opmux_call*) -> uint64_t { return 0; }}})
          .value();
  std::jthread([&] {
    const Rows t;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(op(t.y, t.x).ok());
  }).join();
  EXPECT_EQ(without, 3);
}

TEST(Workspace, a_plan_is_not_cached_without_the_workspace_that_its_kernel_needs_next_time) {
  Stage stage;
  const Operator op = stage.define(kNest);
  static int asked;
  static int without;
  asked = without = 0;
  Registration held =
      stage.runtime
          .implement({.id = "nest/growing.one",
                      .kind = Kind::default_,
                      .kernel = {.run = [](void*, const opmux_call* call) -> int32_t {
                                   without += call->workspace == nullptr ? 1 : 0;
                                   return OPMUX_OK;
                                 },
                                 .workspace = [](void*, const opmux_call*) -> uint64_t {
                                   return asked++ == 0 ? 64 : uint64_t{1} << 60;
                                 }}})
          .value();
  stage.add({.id = "nest/plain.one", .kind = Kind::reference});
  const Rows t;
  EXPECT_TRUE(op(t.y, t.x).ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "nest/plain.one");
  EXPECT_EQ(without, 0);
  EXPECT_EQ(stage.stats("nest/growing.one").calls, 1u);
  EXPECT_GT(stage.stats("nest/growing.one").resource, 0u);
}

/// An operator whose kernel calls another operator, with an int for a float.
struct Inside : Stage {
  Inside()
      : outer(define(kNest)),
        inner(define("scale(out Tensor y[..., H], Tensor x[..., H], float f)")) {
    for (const char* id : {"scale/a.x", "scale/b.x"}) {
      add({.id = id, .kind = Kind::default_, .run = [this](CallFrame& call) {
             frame = &call.c();
             EXPECT_EQ(call.c().args[2].value.f64, 3.0);
             if (reload) {
               EXPECT_TRUE(runtime.policy().set({.deny = {"impl:scale/b.x"}}).ok());
             }
             return std::exchange(first, Outcome::ok);
           }});
    }
    add({.id = "nest/one.x", .kind = Kind::default_, .run = [this](CallFrame& call) {
           // The kernel reads its frame after the call inside it.
           const int64_t depth = call.i64(2);
           EXPECT_TRUE(inner(call.tensor(0), call.tensor(1), 3).ok());
           EXPECT_EQ(call.i64(2), depth);
           return Outcome::ok;
         }});
  }
  std::string run() {
    return ran_by([&] { EXPECT_TRUE(outer(rows.y, rows.x, 5).ok()); });
  }
  /// Whether the last inner call ran with the frame of a plan that the thread caches.
  bool was_cached() {
    const dispatch::ThreadBlock& block = dispatch::own_thread_block();
    const uint32_t number = runtime.core().engine().find("scale")->number;
    return number < block.line_count && frame == &block.recent[number]->call;
  }

  Operator outer, inner;
  const Rows rows;
  const opmux_call* frame = nullptr;
  Outcome first = Outcome::ok;  ///< of the next inner call
  bool reload = false;
};

TEST(Nesting, calls_inside_calls_use_cached_plans_and_are_counted) {
  Inside stage;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(stage.run(), "nest/one.x scale/a.x");
    EXPECT_EQ(stage.was_cached(), i > 0) << i;
  }
  EXPECT_EQ(stage.stats("scale/a.x").calls, 10u);
  EXPECT_EQ(stage.stats("nest/one.x").calls, 10u);
  EXPECT_TRUE(stage.inner(stage.rows.y, stage.rows.x, 3).ok());
  EXPECT_TRUE(stage.was_cached()) << "the plan serves calls outside of calls too";
}

TEST(Nesting, a_cached_plan_that_fails_inside_a_call_falls_back) {
  Inside stage;
  for (int i = 0; i < 3; ++i) stage.run();
  stage.first = Outcome::failed;
  EXPECT_EQ(stage.run(), "nest/one.x scale/a.x scale/b.x");
  EXPECT_EQ(stage.stats("scale/a.x").failed, 1u);
  EXPECT_EQ(stage.stats("scale/b.x").calls, 1u);
}

TEST(Nesting, calls_inside_calls_are_counted_after_their_thread_has_ended) {
  Inside stage;
  std::thread([&] {
    for (int i = 0; i < 10; ++i) stage.run();
    EXPECT_TRUE(stage.was_cached());
    EXPECT_EQ(stage.stats("scale/a.x").calls, 10u);
  }).join();
  EXPECT_EQ(stage.stats("scale/a.x").calls, 10u);
}

TEST(Nesting, each_cached_call_reports_its_own_error) {
  Stage stage;
  const Operator outer = stage.define("outer(out Tensor y[..., H], Tensor x[..., H])"),
                 inner = stage.define("inner(out Tensor y[..., H], Tensor x[..., H])");
  bool fail = false;
  stage.add({.id = "inner/only.one", .kind = Kind::default_, .run = [&](CallFrame& call) {
               return fail ? call.end(Outcome::failed, "inside") : Outcome::ok;
             }});
  std::string said;
  stage.add({.id = "outer/only.one", .kind = Kind::default_, .run = [&](CallFrame& call) {
               const Outcome outcome = fail ? call.end(Outcome::failed, "around") : Outcome::ok;
               said = inner(call.tensor(0), call.tensor(1)).message();
               return outcome;
             }});
  const Rows rows;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(outer(rows.y, rows.x).ok());
  fail = true;
  EXPECT_EQ(outer(rows.y, rows.x).message(), "outer/only.one failed: around");
  EXPECT_EQ(said, "inner/only.one failed: inside");
  fail = false;
  EXPECT_TRUE(outer(rows.y, rows.x).ok());
}

TEST(Nesting, a_policy_change_inside_a_cached_call_frees_the_states_afterwards) {
  Inside stage;
  for (int i = 0; i < 3; ++i) stage.run();
  stage.reload = true;
  EXPECT_EQ(stage.run(), "nest/one.x scale/a.x");
  stage.reload = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stage.run(), "nest/one.x scale/a.x");
  EXPECT_TRUE(stage.was_cached());
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
}

TEST(Nesting, recursion_does_not_fill_the_ring_of_plans) {
  Nest stage;
  const Rows rows;
  stage.wanted = 3;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(stage.op(rows.y, rows.x, 0).ok());
  const dispatch::OperatorSlot& slot = *stage.runtime.core().engine().find("nest");
  const dispatch::CachedPlan* const first = dispatch::own_thread_block().recent[slot.number];
  int current = 0;
  const dispatch::CachedPlan* plan = first;
  do {
    current += plan->epoch == slot.epoch.load() ? 1 : 0;
    plan = plan->next_of_line;
  } while (plan != first);
  EXPECT_EQ(current, 1);
}

}  // namespace
}  // namespace opmux::test
