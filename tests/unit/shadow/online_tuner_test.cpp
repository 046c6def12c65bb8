#include "stage.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <opmux/runtime.hpp>
#include <opmux/state_page.hpp>

namespace opmux::test {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

void spin(microseconds time) {
  const auto end = steady_clock::now() + time;
  while (steady_clock::now() < end) {
  }
}

/// A kernel that doubles its input and takes this long.
auto doubling(microseconds time, float factor = 2) {
  return [time, factor](CallFrame& call) {
    const int64_t count = call.tensor(0).elements();
    for (int64_t i = 0; i < count; ++i)
      call.data<float>(0)[i] = factor * call.data<const float>(1)[i];
    spin(time);
    return Outcome::ok;
  };
}

Policy tuned(Tuning mode) {
  Policy policy;
  policy.tuning = mode;
  policy.shadow = {.every = 1, .share = 1.0, .memory_mb = 16};
  return policy;
}

/// An operator whose first implementation by score is slower than the second. Copied calls are
/// looked at inside look().
struct Online : Stage {
  explicit Online(Policy policy, int threads = 1,
                  const char* schema = "twice(out Tensor y[..., H], Tensor x[..., H])")
      : Stage(options_for(std::move(policy), threads)), op(define(schema)) {
    for (float& value : rows.in) value = 1;
    add({.id = "twice/slow.one",
         .kind = Kind::default_,
         .priority = 200,
         .run = doubling(microseconds(60))});
    add({.id = "twice/plain.one", .kind = Kind::reference, .run = doubling(microseconds(200))});
  }
  void add_fast(float factor = 2) {
    add({.id = "twice/fast.one",
         .kind = Kind::default_,
         .priority = 100,
         .run = doubling(microseconds(20), factor),
         .build_id = "f1"});
  }
  Options options_for(Policy policy, int threads) {
    Options options = bare();
    options.threads = threads;
    options.sources.own_thread = false;
    options.policy = std::move(policy);
    options.sink = [this](const Event& event) {
      const std::lock_guard lock(telling);
      told.push_back(std::string(event.code) + " " + std::string(event.text));
    };
    return options;
  }
  std::string run() {
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
  }
  /// Calls until something was measured, or often enough for that.
  std::vector<TuningProposal> measure() {
    for (int i = 0; i < 40 && runtime.tuning().proposals().empty(); ++i) {
      run();
      waited += std::chrono::milliseconds(1);
      runtime.tick(waited);
    }
    return runtime.tuning().proposals();
  }
  std::string event(const std::string& code) {
    const std::lock_guard lock(telling);
    const auto found = std::ranges::find_if(
        told, [&](const std::string& each) { return each.starts_with(code + " "); });
    return found == told.end() ? "" : *found;
  }

  std::mutex telling;
  std::vector<std::string> told;
  Operator op;
  Rows rows;
  std::chrono::nanoseconds waited = std::chrono::hours(1);
};

TEST(OnlineTuner, proposes_a_faster_implementation_and_changes_nothing) {
  Online online(tuned(Tuning::online));
  online.add_fast();
  const std::vector<TuningProposal> found = online.measure();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].op, "twice");
  EXPECT_EQ(found[0].implementation, "twice/fast.one");
  EXPECT_EQ(found[0].baseline, "twice/slow.one");
  EXPECT_THAT(found[0].cell, testing::MatchesRegex("f32,f32 H=[0-9]+ rows=[0-9]+ threads=1 eager"));
  EXPECT_GT(found[0].low, 1);
  EXPECT_GE(found[0].speed, found[0].low);
  EXPECT_GE(found[0].rounds, 8u);
  EXPECT_GT(found[0].time, 1'700'000'000);
  EXPECT_FALSE(found[0].applied);
  EXPECT_THAT(found[0].why_not, HasSubstr("apply"));
  EXPECT_THAT(online.event("tune.proposed"), HasSubstr("twice/fast.one is "));
  EXPECT_THAT(online.event("tune.proposed"), HasSubstr(" faster than twice/slow.one"));
  EXPECT_EQ(online.run(), "twice/slow.one");
  const uint64_t runs = online.kernel("twice/fast.one").runs;
  for (int i = 0; i < 20; ++i) {
    online.run();
    online.runtime.tick(online.waited += std::chrono::milliseconds(1));
  }
  EXPECT_EQ(online.kernel("twice/fast.one").runs, runs) << "there was a verdict";
}

TEST(OnlineTuner, applies_what_the_policy_lets_it_apply) {
  Online online(tuned(Tuning::online_apply));
  online.add_fast();
  EXPECT_EQ(online.run(), "twice/slow.one");
  const std::vector<TuningProposal> found = online.measure();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].applied);
  EXPECT_EQ(found[0].why_not, "");
  EXPECT_THAT(online.event("tune.applied"), HasSubstr("later calls run it instead"));
  EXPECT_EQ(online.run(), "twice/fast.one");
  const Explanation why = online.op.explain(online.rows.y, online.rows.x);
  ASSERT_EQ(why.chosen, "twice/fast.one");
  ASSERT_TRUE(why.candidates[0].measured.has_value());
  EXPECT_EQ(why.candidates[0].measured->found_in, "online");
  EXPECT_THAT(why.to_string(), HasSubstr("; measured by this process, "));
  // Reading bundles again keeps it; a policy without measured speeds does not use it.
  ASSERT_TRUE(online.runtime.tuning().reload().ok());
  EXPECT_EQ(online.run(), "twice/fast.one");
  ASSERT_TRUE(online.runtime.policy().set({.tuning = Tuning::off}).ok());
  EXPECT_EQ(online.run(), "twice/slow.one");
  EXPECT_THAT(to_json(found), HasSubstr(R"("applied":true,"why_not":"")"));
}

TEST(OnlineTuner, a_frozen_runtime_only_proposes) {
  Online online(tuned(Tuning::online_apply));
  online.add_fast();
  online.run();
  ASSERT_TRUE(online.runtime.lockfile().freeze());
  const std::vector<TuningProposal> found = online.measure();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].applied);
  EXPECT_THAT(found[0].why_not, HasSubstr("frozen"));
  EXPECT_EQ(online.run(), "twice/slow.one");
}

TEST(OnlineTuner, measures_nothing_without_the_policy) {
  for (const Tuning mode : {Tuning::off, Tuning::bundle}) {
    Online online(tuned(mode));
    online.add_fast();
    EXPECT_TRUE(online.measure().empty());
    EXPECT_EQ(online.kernel("twice/fast.one").runs, 0u);
    EXPECT_GT(online.kernel("twice/plain.one").runs, 0u) << "the shadow check is on";
  }
}

TEST(OnlineTuner, switches_the_shadow_check_on) {
  Policy policy;
  policy.tuning = Tuning::online;
  Online online(policy);
  EXPECT_EQ(online.runtime.health().report().shadow.every, 1024u);
  policy.shadow.every = 0;
  ASSERT_TRUE(online.runtime.policy().set(policy).ok());
  EXPECT_EQ(online.runtime.health().report().shadow.every, 0u) << "the policy says no";
}

TEST(OnlineTuner, leaves_out_an_implementation_with_wrong_results) {
  Online online(tuned(Tuning::online_apply));
  online.add_fast(3);
  EXPECT_TRUE(online.measure().empty());
  EXPECT_THAT(online.event("tune.left_out"), HasSubstr("differs from the reference: y["));
  EXPECT_EQ(online.kernel("twice/fast.one").runs, 1u);
  EXPECT_EQ(online.run(), "twice/slow.one");
}

TEST(OnlineTuner, measures_no_calls_whose_runs_would_differ_from_those_of_the_program) {
  Online two_threads(tuned(Tuning::online), 2);
  two_threads.add_fast();
  EXPECT_TRUE(two_threads.measure().empty());
  EXPECT_EQ(two_threads.kernel("twice/fast.one").runs, 0u);
  EXPECT_THAT(two_threads.event("tune.not_measured"), HasSubstr("more than one thread"));
  Online packs(tuned(Tuning::online), 1, "twice(out Tensor y[..., H], const Tensor x[..., H])");
  packs.add_fast();
  EXPECT_TRUE(packs.measure().empty());
  EXPECT_EQ(packs.kernel("twice/fast.one").runs, 0u);
  EXPECT_THAT(packs.event("tune.not_measured"), HasSubstr("pack their constants"));
  // The scope chose another implementation than a call outside of it gets.
  Online scoped(tuned(Tuning::online));
  scoped.add_fast();
  Policy other;
  other.prefer = {"impl:twice/fast.one"};
  {
    const PolicyScope scope(scoped.runtime, other);
    EXPECT_TRUE(scoped.measure().empty());
  }
}

}  // namespace
}  // namespace opmux::test
