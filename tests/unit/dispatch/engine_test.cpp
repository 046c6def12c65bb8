#include "dispatch/engine.hpp"

#include <barrier>
#include <mutex>
#include <thread>

#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

struct Listening : Stage {
  explicit Listening(Options options = bare()) : Stage(with_sink(std::move(options))) {}
  Options with_sink(Options options) {
    options.sink = [this](const Event& event) {
      const std::lock_guard lock(mutex);
      events.push_back(event);
    };
    return options;
  }
  size_t told(const std::string& code) {
    const std::lock_guard lock(mutex);
    size_t count = 0;
    for (const Event& event : events) count += event.code == code ? 1 : 0;
    return count;
  }
  std::mutex mutex;
  std::vector<Event> events;
};

TEST(PolicyInForce, is_the_only_policy_that_operators_keep_alive) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  const Rule own{.op = "copy", .prefer = {"reference"}};
  ASSERT_TRUE(stage.runtime.policy().set({.rules = {own, {.op = "softmax"}}}).ok());
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
  const std::weak_ptr<const policy::PolicyLayer> before =
      stage.runtime.core().engine().policies()->layers.front();
  EXPECT_FALSE(before.expired());
  ASSERT_TRUE(stage.runtime.policy().set({.rules = {own, {.op = "matmul"}}}).ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
  EXPECT_TRUE(before.expired());
}

TEST(Withdrawal, waits_for_a_call_that_is_inside) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  std::barrier step(2);
  std::atomic<bool> left{false};
  stage.add({.id = "copy/slow.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               step.arrive_and_wait();
               step.arrive_and_wait();
               left.store(true);
               return Outcome::ok;
             }});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  for (int warm = 0; warm < 2; ++warm) {
    left.store(false);
    std::thread inside([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
    step.arrive_and_wait();
    std::thread leave([&] { step.arrive_and_wait(); });
    if (warm == 0) {
      leave.join();
      inside.join();
      continue;
    }
    EXPECT_TRUE(stage.kernel("copy/slow.one").registration.withdraw().ok());
    EXPECT_TRUE(left.load());
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
    leave.join();
    inside.join();
  }
}

TEST(Withdrawal, from_inside_the_call_is_refused_and_unpublishes) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  Status inside;
  stage.add({.id = "copy/suicidal.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               inside = stage.kernel("copy/suicidal.one").registration.withdraw();
               return Outcome::ok;
             }});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/suicidal.one");
  EXPECT_EQ(inside.reason(), "withdraw.inside");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
}

TEST(Withdrawal, the_end_of_a_registration_does_not_wait) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/ending.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               stage.kernel("copy/ending.one").registration = Registration();
               return Outcome::ok;
             }});
  const Rows rows;
  EXPECT_TRUE(op(rows.y, rows.x).ok());
  EXPECT_EQ(op(rows.y, rows.x).code(), Code::no_candidate);
}

TEST(Withdrawal, a_kept_registration_stays) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/kept.one", .kind = Kind::default_}).registration.keep();
  EXPECT_TRUE(stage.kernel("copy/kept.one").registration.withdraw().ok());
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/kept.one");
}

TEST(Engine, logs_many_retired_snapshots_and_lets_the_listener_call_back) {
  std::vector<CallStats> seen_by_sink;
  Runtime* runtime = nullptr;
  Options options = bare();
  size_t warnings = 0;
  options.sink = [&](const Event& event) {
    if (event.code != "dispatch.retired_waiting") return;
    ++warnings;
    seen_by_sink = runtime->stats();  // The sink is never called under a lock.
  };
  Stage stage(std::move(options));
  runtime = &stage.runtime;
  const Operator op = stage.define(kCopy);
  std::atomic<int> inside{0}, leave{0};
  stage.add({.id = "copy/stuck.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               inside.fetch_add(1);
               inside.notify_all();
               leave.wait(0);
               return Outcome::ok;
             }});
  // Each call is inside another state, so each publication leaves one more that cannot be freed.
  std::vector<std::thread> stuck;
  const auto publish_under_a_call = [&](int i) {
    stuck.emplace_back([&] {
      const Rows rows;
      EXPECT_TRUE(op(rows.y, rows.x).ok());
    });
    inside.wait(i);
    ASSERT_TRUE(stage.runtime.policy().set({.prefer = {i % 2 == 0 ? "default" : "vendor"}}).ok());
  };
  for (int i = 0; i < 63; ++i) publish_under_a_call(i);
  EXPECT_EQ(warnings, 0u);
  for (int i = 63; i < 70; ++i) publish_under_a_call(i);
  EXPECT_EQ(warnings, 1u);
  EXPECT_FALSE(seen_by_sink.empty());
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 70u);
  leave = 1;
  leave.notify_all();
  for (std::thread& thread : stuck) thread.join();
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
}

TEST(Engine, names_once_the_implementation_that_makes_more_than_256_classes) {
  Listening stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/modest.one",
             .kind = Kind::default_,
             .caps = Caps{}.multiple_of("H", 4).at_least("H", 2)});
  stage.add({.id = "copy/picky.one",
             .verify = [](const Facts&) { return std::string(); },
             .verify_reads = {{{OPMUX_FACT_DIM, "H"}}}});
  Rows rows;
  const auto call = [&](int64_t h) {
    ASSERT_TRUE(op(TensorView(rows.out, f32, {1, h}), TensorView(rows.in, f32, {1, h})).ok());
  };
  for (int64_t h = 1; h <= 256; ++h) call(h);
  EXPECT_EQ(stage.told("dispatch.many_classes"), 0u);
  for (int64_t h = 257; h <= 300; ++h) call(h);
  ASSERT_EQ(stage.told("dispatch.many_classes"), 1u);
  const Event event =
      *std::ranges::find(stage.events, std::string("dispatch.many_classes"), &Event::code);
  EXPECT_EQ(event.level, Level::warning);
  EXPECT_EQ(event.op, "copy");
  EXPECT_EQ(event.impl, "copy/picky.one");
  EXPECT_EQ(
      event.text,
      "calls fall into more than 256 decision classes, because it distinguishes 257 values of H "
      "so far; each class costs one decision");
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"vendor"}}).ok());
  for (int64_t h = 1; h <= 300; ++h) call(h);
  EXPECT_EQ(stage.told("dispatch.many_classes"), 1u);
}

TEST(Engine, only_operators_affected_by_a_change_are_decided_again) {
  Stage stage;
  (void)stage.define(kCopy);
  const Operator move = stage.define("move(out Tensor y[..., H], Tensor x[..., H])");
  int decisions = 0;
  stage.add({.id = "move/one.x", .kind = Kind::default_, .verify = [&](const Facts&) {
               return ++decisions, std::string();
             }});
  const Rows rows;
  ASSERT_TRUE(move(rows.y, rows.x).ok());
  stage.add({.id = "copy/one.x", .kind = Kind::default_});
  ASSERT_TRUE(
      stage.runtime.policy().set({.rules = {{.op = "copy", .prefer = {"reference"}}}}).ok());
  ASSERT_TRUE(move(rows.y, rows.x).ok());
  EXPECT_EQ(decisions, 1);
  ASSERT_TRUE(
      stage.runtime.policy().set({.rules = {{.op = "move", .prefer = {"reference"}}}}).ok());
  ASSERT_TRUE(move(rows.y, rows.x).ok());
  EXPECT_EQ(decisions, 2);
}

TEST(Engine, counts_calls_of_running_and_ended_threads) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/one.x", .kind = Kind::default_});
  const Rows rows;
  std::barrier step(2);
  std::thread living([&] {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(op(rows.y, rows.x).ok());
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  std::thread([&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(op(rows.y, rows.x).ok());
  }).join();
  step.arrive_and_wait();
  EXPECT_EQ(stage.stats("copy/one.x").calls, 30u);
  step.arrive_and_wait();
  living.join();
  EXPECT_EQ(stage.stats("copy/one.x").calls, 30u);
  // Other plans take the cache entries of this thread; the counts of the evicted ones are kept.
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(stage.runtime.policy().set({.prefer = {i % 2 == 0 ? "default" : "vendor"}}).ok());
    ASSERT_TRUE(op(rows.y, rows.x).ok());
    ASSERT_TRUE(op(rows.y, rows.x).ok());
  }
  EXPECT_EQ(stage.stats("copy/one.x").calls, 42u);
  {
    Plan plan = op.bind(rows.y, rows.x).value();
    ASSERT_TRUE(plan(rows.y, rows.x).ok());
    EXPECT_EQ(stage.stats("copy/one.x").calls, 43u) << "including the calls of a live bound plan";
    ASSERT_TRUE(plan.refresh().ok());
    ASSERT_TRUE(plan(rows.y, rows.x).ok());
    EXPECT_EQ(stage.stats("copy/one.x").calls, 44u);
  }
  EXPECT_EQ(stage.stats("copy/one.x").calls, 44u);
}

TEST(Engine, logs_each_choice_and_each_refusal_once) {
  Listening stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/choosy.one", .kind = Kind::default_, .caps = Caps{}.multiple_of("H", 16)});
  RecordingKernel& plain = stage.add({.id = "copy/plain.one", .kind = Kind::vendor});
  stage.add({.id = "copy/last.one", .kind = Kind::reference});
  for (int64_t h = 1; h < 14; ++h) {
    const Rows rows(2, h);
    ASSERT_TRUE(op(rows.y, rows.x).ok());
  }
  EXPECT_EQ(stage.told("dispatch.chosen"), 1u);
  EXPECT_EQ(stage.told("dispatch.refused"), 1u);
  plain.body = [](CallFrame& call) { return call.end(Outcome::failed, "broken"); };
  for (int i = 0; i < 5; ++i) {
    const Rows rows(2, 8);
    ASSERT_TRUE(op(rows.y, rows.x).ok());
  }
  EXPECT_EQ(stage.told("call.fell_back"), 1u);
  base::EventLog& log = stage.runtime.core().log();
  EXPECT_EQ(log.count("call.fell_back", "copy", "copy/plain.one", "failed"), 5u);
  EXPECT_EQ(log.suppressed(), 6u) << "including the repeated decision after a failure";
}

TEST(Engine, a_lost_device_takes_its_implementations_and_plans_with_it) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  constexpr int32_t kType = OPMUX_DEVICE_OPENCL;
  stage.add({.id = "copy/gpu.one", .kind = Kind::default_, .caps = Caps{}.device(kType)});
  stage.add({.id = "copy/gpu2.one", .kind = Kind::vendor, .caps = Caps{}.device(kType)});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  alignas(64) float in[32] = {}, out[32] = {};
  const TensorView x(in, f32, {2, 8}, {kType, 0}), y(out, f32, {2, 8}, {kType, 0});
  const TensorView other_x(in, f32, {2, 8}, {kType, 1}), other_y(out, f32, {2, 8}, {kType, 1});
  Plan plan = op.bind(y, x).value(), other_plan = op.bind(other_y, other_x).value();
  EXPECT_EQ(plan.implementation(), "copy/gpu.one");
  ASSERT_TRUE(op(y, x).ok());
  stage.kernel("copy/gpu.one").body = [](CallFrame&) { return Outcome::device_lost; };
  EXPECT_EQ(ran_by([&] { EXPECT_EQ(op(y, x).code(), Code::device_lost); }), "copy/gpu.one");
  EXPECT_EQ(stage.runtime.health().lost_devices(), (std::vector<Device>{{kType, 0}}));
  EXPECT_EQ(plan(y, x).code(), Code::revoked);
  const Status gone = op(y, x);
  EXPECT_EQ(gone.code(), Code::no_candidate);
  EXPECT_NE(gone.message().find("health.device_fatal"), std::string_view::npos);
  // The other device and the CPU continue to work.
  stage.kernel("copy/gpu.one").body = [](CallFrame&) { return Outcome::ok; };
  EXPECT_EQ(other_plan.state(), Plan::State::current);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(other_y, other_x).ok()); }), "copy/gpu.one");
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
  // A plan that detects the loss reports it too.
  stage.kernel("copy/gpu.one").body = [](CallFrame&) { return Outcome::device_lost; };
  EXPECT_EQ(other_plan(other_y, other_x).code(), Code::device_lost);
  EXPECT_EQ(other_plan.state(), Plan::State::revoked);
  EXPECT_EQ(stage.runtime.health().lost_devices().size(), 2u);
}

}  // namespace
}  // namespace opmux::test
