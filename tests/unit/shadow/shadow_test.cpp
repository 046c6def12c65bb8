#include "stage.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include <opmux/runtime.hpp>

#include "forked.hpp"

namespace opmux::test {
namespace {

using std::chrono::seconds;

constexpr const char* kTwice = "twice(out Tensor y[..., H], Tensor x[..., H])";

Outcome doubles(CallFrame& call) {
  const int64_t count = call.tensor(0).elements();
  for (int64_t i = 0; i < count; ++i) call.data<float>(0)[i] = 2 * call.data<float>(1)[i];
  return Outcome::ok;
}
/// Computes all elements except the last one.
Outcome forgets_the_tail(CallFrame& call) {
  (void)doubles(call);
  call.data<float>(0)[call.tensor(0).elements() - 1] = 7;
  return Outcome::ok;
}
Outcome gives_nan(CallFrame& call) {
  (void)doubles(call);
  call.data<float>(0)[3] = NAN;
  return Outcome::ok;
}

Policy every_call(OnMismatch on_mismatch = OnMismatch::open) {
  Policy policy;
  policy.shadow = {.every = 1, .on_mismatch = on_mismatch, .share = 1.0, .memory_mb = 16};
  return policy;
}

/// Collects the codes of events, which any thread may log until the runtime is destroyed.
struct ToldCodes {
  std::mutex telling;
  std::vector<std::string> told;
};

/// An operator with a reference, whose first implementation can be made to compute wrong results.
/// Comparisons run inside look().
struct Mirror : ToldCodes, Stage {
  explicit Mirror(Policy policy = every_call(), bool own_thread = false)
      : Stage(options_for(std::move(policy), own_thread)) {
    for (float& value : rows.in) value = 1;
    op = define(kTwice);
    add({.id = "twice/fast.one", .kind = Kind::default_, .run = doubles});
    add({.id = "twice/plain.one", .kind = Kind::reference, .run = doubles});
  }
  Options options_for(Policy policy, bool own_thread) {
    Options options = bare();
    options.sources.own_thread = own_thread;
    options.policy = std::move(policy);
    options.sink = [this](const Event& event) {
      const std::lock_guard lock(telling);
      told.push_back(std::string(event.code));
    };
    return options;
  }
  std::string run(const Rows& of) {
    return ran_by([&] { EXPECT_TRUE(op(of.y, of.x).ok()); });
  }
  std::string run() { return run(rows); }
  void look() {
    waited += std::chrono::milliseconds(1);
    runtime.tick(waited);
  }
  ShadowInfo fast() {
    for (const ShadowInfo& info : runtime.health().report().shadow.implementations) {
      if (info.implementation == "twice/fast.one") return info;
    }
    return {};
  }
  uint64_t skipped(const std::string& reason) {
    for (const ShadowInfo::Skipped& one : fast().skipped) {
      if (one.reason == reason) return one.calls;
    }
    return 0;
  }
  bool was_told(const std::string& code) {
    const std::lock_guard lock(telling);
    return std::ranges::find(told, code) != told.end();
  }

  Operator op = runtime.op("rms_norm").value();
  Rows rows;
  std::chrono::nanoseconds waited = std::chrono::hours(1);
};

TEST(Shadow, right_results_agree_and_nothing_happens) {
  Mirror mirror;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(mirror.run(), "twice/fast.one");
  EXPECT_EQ(mirror.kernel("twice/plain.one").runs, 0u)
      << "the reference does not run on the caller's thread";
  EXPECT_GT(mirror.runtime.health().report().shadow.waiting, 0u);
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, mirror.kernel("twice/plain.one").runs);
  EXPECT_EQ(mirror.fast().compared + mirror.skipped("busy"), 50u);
  EXPECT_GE(mirror.fast().compared, 30u);
  EXPECT_EQ(mirror.fast().mismatches, 0u);
  EXPECT_EQ(mirror.runtime.health().report().shadow.waiting, 0u);
  EXPECT_EQ(mirror.stats("twice/plain.one").calls, 0u) << "comparisons do not count as calls";
  EXPECT_EQ(mirror.run(), "twice/fast.one");
}

TEST(Shadow, a_wrong_element_opens_its_class_and_is_named) {
  Mirror mirror;
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  EXPECT_EQ(mirror.run(), "twice/fast.one");
  EXPECT_EQ(mirror.rows.out[15], 7) << "the caller's result is not changed";
  mirror.look();
  EXPECT_EQ(mirror.run(), "twice/plain.one");
  EXPECT_EQ(mirror.run(Rows(2, 64)), "twice/fast.one") << "another class";
  const ShadowInfo fast = mirror.fast();
  EXPECT_EQ(fast.mismatches, 1u);
  ASSERT_TRUE(fast.last);
  EXPECT_EQ(fast.last->element, "y[1,7]");
  EXPECT_EQ(fast.last->got, 7);
  EXPECT_EQ(fast.last->expected, 2);
  EXPECT_GT(fast.last->tolerance, 0);
  EXPECT_EQ(fast.last->what, "f32 H<=8 rows<=2 on cpu:0");
  EXPECT_TRUE(mirror.was_told("shadow.mismatch"));
  EXPECT_EQ(mirror.runtime.health().report().breakers.at(0).why,
            "result differs from the reference");
  EXPECT_EQ(mirror.runtime.health().report().verdict, Health::degraded);
}

TEST(Shadow, a_policy_may_have_it_only_reported) {
  Mirror mirror(every_call(OnMismatch::report));
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(mirror.run(), "twice/fast.one");
  mirror.look();
  EXPECT_EQ(mirror.run(), "twice/fast.one");
  EXPECT_GE(mirror.fast().mismatches, 1u);
  EXPECT_TRUE(mirror.was_told("shadow.mismatch"));
  EXPECT_TRUE(mirror.runtime.health().report().breakers.empty());
}

TEST(Shadow, an_unexplained_nan_is_logged_and_then_compared) {
  Mirror mirror;
  mirror.kernel("twice/fast.one").body = gives_nan;
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.fast().not_finite, 1u);
  EXPECT_EQ(mirror.fast().mismatches, 1u);
  EXPECT_TRUE(mirror.was_told("shadow.not_finite"));
}

TEST(Shadow, infinity_that_the_reference_has_too_is_no_mismatch) {
  Mirror mirror;
  mirror.rows.in[0] = 3e38f;
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.fast().not_finite, 1u);
  EXPECT_EQ(mirror.fast().compared, 1u);
  EXPECT_EQ(mirror.fast().mismatches, 0u);
  EXPECT_EQ(mirror.run(), "twice/fast.one");
}

TEST(Shadow, is_off_unless_a_policy_enables_it) {
  Mirror mirror{Policy{}};
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  for (int i = 0; i < 100; ++i) mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.runtime.health().report().shadow.every, 0u);
  EXPECT_TRUE(mirror.runtime.health().report().shadow.implementations.empty());
  EXPECT_EQ(mirror.run(), "twice/fast.one");
}

TEST(Shadow, is_switched_by_policies_while_calls_are_cached) {
  Mirror mirror{Policy{}};
  mirror.run();
  ASSERT_TRUE(mirror.runtime.policy().set(every_call()).ok());
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 1u);
  ASSERT_TRUE(mirror.runtime.policy().set({}).ok());
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  for (int i = 0; i < 10; ++i) mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 1u);
  EXPECT_EQ(mirror.run(), "twice/fast.one");
}

TEST(Shadow, a_policy_file_turns_it_on) {
  Mirror mirror{Policy{}};
  ASSERT_TRUE(
      mirror.runtime.policy().load("opmux: 1\nshadow: {every: 1, share: 1}\n", "p.yaml").ok());
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.runtime.health().report().shadow.every, 1u);
  EXPECT_EQ(mirror.run(), "twice/plain.one");
}

TEST(Shadow, settings_without_a_rate_are_reported_as_ineffective) {
  Mirror mirror{Policy{}};
  const auto codes = [&](const char* text) {
    std::vector<std::string> all;
    const PolicyCheck check = mirror.runtime.policy().check(text, "p.yaml").value();
    for (const PolicyFinding& finding : check.findings) all.push_back(finding.code);
    return all;
  };
  EXPECT_THAT(codes("opmux: 1\nshadow: {on_mismatch: report}\n"),
              testing::ElementsAre("policy.unread"));
  EXPECT_THAT(codes("opmux: 1\nshadow: {every: 16}\n"), testing::IsEmpty());
}

TEST(Shadow, copies_stay_within_their_memory_and_the_rest_is_counted) {
  Policy policy = every_call();
  policy.shadow.memory_mb = 1;
  Mirror mirror(policy);
  std::vector<float> in(100'000, 1.0f), out(100'000);
  const TensorView y(out.data(), f32, {1, 100'000}), x(in.data(), f32, {1, 100'000});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(mirror.op(y, x).ok());
  EXPECT_EQ(mirror.runtime.health().report().shadow.waiting, 1u);
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 1u);
  EXPECT_GE(mirror.skipped("memory"), 10u);
}

TEST(Shadow, large_calls_are_counted_and_not_copied_unless_the_memory_allows_it) {
  // Input and output together have 1.2 MB.
  std::vector<float> in(150'000, 1.0f), out(150'000);
  const TensorView y(out.data(), f32, {1, 150'000}), x(in.data(), f32, {1, 150'000});
  const auto run_four = [&](Mirror& mirror) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(mirror.op(y, x).ok());
    EXPECT_EQ(mirror.run(), "twice/fast.one") << "a small call";
    mirror.look();
  };
  Mirror mirror;
  run_four(mirror);
  EXPECT_EQ(mirror.skipped("size"), 4u);
  EXPECT_EQ(mirror.fast().compared, 1u);
  EXPECT_THAT(to_json(mirror.runtime.health().report()),
              testing::HasSubstr(R"("skipped":{"size":4})"));
  Policy policy = every_call();
  policy.shadow.memory_mb = 32;
  Mirror larger(policy);
  run_four(larger);
  EXPECT_EQ(larger.skipped("size"), 0u);
  EXPECT_EQ(larger.fast().compared, 5u);
}

TEST(Shadow, is_limited_to_a_share_of_a_thread) {
  Policy policy = every_call();
  policy.shadow.share = 0.01;
  Mirror mirror(policy);
  mirror.kernel("twice/plain.one").body = [](CallFrame& call) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < end) continue;
    return doubles(call);
  };
  for (int i = 0; i < 10; ++i) mirror.run();
  mirror.look();
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 1u) << "after 2 ms of work it pauses for 200 ms";
  mirror.waited += seconds(10);
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 2u);
}

TEST(Shadow, the_reference_reads_the_inputs_as_they_were_at_the_call) {
  Mirror mirror;
  mirror.define("grow(inout Tensor x[..., H])");
  const auto grows = [](CallFrame& call) {
    for (int64_t i = 0; i < call.tensor(0).elements(); ++i) call.data<float>(0)[i] += 1;
    return Outcome::ok;
  };
  mirror.add({.id = "grow/fast.one", .kind = Kind::default_, .run = grows});
  mirror.add({.id = "grow/plain.one", .kind = Kind::reference, .run = grows});
  const Operator grow = mirror.runtime.op("grow").value();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(grow(mirror.rows.x).ok());
  for (float& value : mirror.rows.in) value = -100;
  mirror.look();
  for (const ShadowInfo& info : mirror.runtime.health().report().shadow.implementations) {
    if (info.implementation != "grow/fast.one") continue;
    EXPECT_GE(info.compared, 1u);
    EXPECT_EQ(info.mismatches, 0u);
  }
  EXPECT_EQ(mirror.rows.in[0], -100);
}

TEST(Shadow, calls_inside_of_calls_are_not_compared) {
  Mirror mirror;
  mirror.define("outer(out Tensor y[..., H], Tensor x[..., H])");
  mirror.add({.id = "outer/plain.one", .kind = Kind::reference, .run = [&](CallFrame& call) {
                return mirror.op(call.tensor(0), call.tensor(1)).ok() ? Outcome::ok
                                                                      : Outcome::failed;
              }});
  const Operator outer = mirror.runtime.op("outer").value();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(outer(mirror.rows.y, mirror.rows.x).ok());
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 0u);
  EXPECT_GE(mirror.skipped("nested"), 1u);
}

TEST(Shadow, an_operator_without_a_reference_is_not_checked) {
  Mirror mirror;
  mirror.define("lonely(out Tensor y[..., H], Tensor x[..., H])");
  mirror.add({.id = "lonely/fast.one", .kind = Kind::default_, .run = doubles});
  const Operator lonely = mirror.runtime.op("lonely").value();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(lonely(mirror.rows.y, mirror.rows.x).ok());
  EXPECT_EQ(mirror.runtime.health().report().shadow.waiting, 0u);
}

TEST(Shadow, a_reference_that_is_denied_does_not_run) {
  Policy policy = every_call();
  policy.deny = {"twice/plain.one"};
  Mirror mirror(policy);
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.kernel("twice/plain.one").runs, 0u);
  EXPECT_EQ(mirror.skipped("reference"), 1u);
}

TEST(Shadow, a_require_rule_does_not_exclude_the_reference_from_comparisons) {
  Mirror mirror;
  Policy policy = every_call();
  policy.rules = {{.op = "twice", .require = {"impl:twice/fast.one"}}};
  ASSERT_TRUE(mirror.runtime.policy().set(policy).ok());
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.fast().compared, 1u);
}

TEST(Shadow, bound_plans_are_compared_too) {
  Mirror mirror;
  Plan plan = mirror.op.bind(mirror.rows.y, mirror.rows.x).value();
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  EXPECT_TRUE(plan(mirror.rows.y, mirror.rows.x).ok());
  mirror.look();
  EXPECT_EQ(mirror.fast().mismatches, 1u);
  EXPECT_EQ(plan.state(), Plan::State::stale);
}

TEST(Shadow, probes_after_a_mismatch_are_always_compared) {
  Mirror mirror;
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  mirror.run();
  mirror.look();
  EXPECT_EQ(mirror.run(), "twice/plain.one");
  mirror.waited += seconds(40);
  mirror.look();
  EXPECT_EQ(mirror.run(), "twice/fast.one") << "a probe";
  mirror.look();
  EXPECT_EQ(mirror.run(), "twice/plain.one") << "the probe's result was wrong again";
  EXPECT_EQ(mirror.runtime.health().report().breakers.at(0).openings, 2u);
}

TEST(Shadow, calls_that_ended_before_the_class_opened_do_not_open_it_again) {
  Mirror mirror;
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  for (int i = 0; i < 20; ++i) mirror.run();
  mirror.look();
  EXPECT_GE(mirror.fast().mismatches, 10u);
  EXPECT_EQ(mirror.runtime.health().report().breakers.at(0).openings, 1u);
}

TEST(Shadow, after_a_mismatch_no_thread_gets_that_result_again) {
  for (int round = 0; round < 20; ++round) {
    Mirror mirror;
    // Publish just before, so that the next publication would have to wait.
    ASSERT_TRUE(mirror.runtime.health().force_breaker("twice/fast.one", BreakerForce::open).ok());
    ASSERT_TRUE(mirror.runtime.health().force_breaker("twice/fast.one", BreakerForce::close).ok());
    mirror.runtime.tick(std::chrono::hours(1));
    mirror.waited += seconds(1);
    mirror.runtime.tick(mirror.waited);
    mirror.kernel("twice/fast.one").body = forgets_the_tail;
    std::atomic<bool> opened{false}, done{false};
    std::atomic<int> late{0}, calls{0};
    const auto caller = [&] {
      Rows own;
      for (float& value : own.in) value = 1;
      while (!done.load()) {
        const bool before = opened.load();
        (void)mirror.op(own.y, own.x);
        calls.fetch_add(1);
        if (before && own.out[15] == 7) late.fetch_add(1);
      }
    };
    std::thread one(caller), other(caller);
    while (calls.load() < 100) std::this_thread::yield();
    while (mirror.fast().mismatches == 0) mirror.look();
    opened.store(true);
    const int seen = calls.load();
    while (calls.load() < seen + 1000) std::this_thread::yield();
    done.store(true);
    one.join();
    other.join();
    EXPECT_EQ(late.load(), 0) << "round " << round;
  }
}

TEST(Shadow, a_separate_thread_compares) {
  Mirror mirror(every_call(), true);
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  while (mirror.fast().mismatches == 0) mirror.run();
  while (mirror.run() != "twice/plain.one") continue;
}

TEST(Shadow, a_forked_child_starts_with_an_empty_queue_and_a_new_thread) {
  if (under_thread_sanitizer()) GTEST_SKIP() << "it lets no forked child start a thread";
  Policy policy = every_call();
  policy.shadow.share = 0.001;
  Mirror mirror(policy, true);
  mirror.kernel("twice/fast.one").body = forgets_the_tail;
  EXPECT_TRUE(true_in_forked_child([&] {
    if (mirror.runtime.health().report().shadow.waiting != 0) return false;
    while (mirror.fast().mismatches == 0) (void)mirror.op(mirror.rows.y, mirror.rows.x);
    return true;
  }));
}

TEST(Shadow, reports_its_results_as_json) {
  Mirror mirror;
  mirror.kernel("twice/fast.one").body = gives_nan;
  mirror.run();
  mirror.look();
  const std::string json = to_json(mirror.runtime.health().report());
  EXPECT_THAT(json, testing::HasSubstr(R"("shadow":{"every":1,"waiting":0,"implementations":[)"));
  EXPECT_THAT(json, testing::HasSubstr(R"("element":"y[0,3]","got":"nan","expected":2)"));
}

}  // namespace
}  // namespace opmux::test
