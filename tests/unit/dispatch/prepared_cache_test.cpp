#include "dispatch/plan/prepared_cache.hpp"

#include <barrier>
#include <set>
#include <thread>

#include "stage.hpp"

namespace opmux::test {
namespace {

/// An implementation whose plan() and plan_free() count.
struct Preparing {
  std::atomic<int> plans{0}, frees{0}, alive{0};
  std::atomic<int32_t> ends{OPMUX_OK};
  std::function<void()> while_planning = [] {};
  std::function<int32_t(void*)> running = [](void*) { return OPMUX_OK; };

  static int32_t plan(void* self, const opmux_call* call, void** prepared) {
    auto& mine = *static_cast<Preparing*>(self);
    mine.while_planning();
    const int number = ++mine.plans;
    if (mine.ends != OPMUX_OK) {
      CallFrame(*call).end(Outcome::resource, "no room");
      return mine.ends;
    }
    ++mine.alive;
    *prepared = new int(number);
    return OPMUX_OK;
  }
  static void plan_free(void* self, void* prepared) {
    ++static_cast<Preparing*>(self)->frees;
    --static_cast<Preparing*>(self)->alive;
    delete static_cast<int*>(prepared);
  }
  static int32_t run(void* self, const opmux_call* call) {
    return static_cast<Preparing*>(self)->running(call->prepared);
  }
  KernelFunctions functions() {
    return {.user_data = this, .run = run, .plan = plan, .plan_free = plan_free};
  }
};

struct PreparedCacheTest : testing::Test {
  void implement(std::optional<std::vector<FactRef>> reads = {}, uint32_t flags = 0) {
    held = stage.runtime
               .implement({.id = "copy/prep.one",
                           .kind = Kind::default_,
                           .kernel = preparing.functions(),
                           .plan_reads = std::move(reads),
                           .flags = flags})
               .value();
  }
  Status call(int64_t rows, int64_t h) {
    const Rows t(rows, h);
    return op(t.y, t.x);
  }
  Preparing preparing;
  Stage stage;
  Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H], int n = 0)");
  Registration held;
};

TEST_F(PreparedCacheTest, prepares_once_for_equal_arguments) {
  implement();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call(2, 8).ok());
  EXPECT_EQ(preparing.plans, 1);
  ASSERT_TRUE(call(3, 8).ok());
  ASSERT_TRUE(call(2, 8).ok());
  EXPECT_EQ(preparing.plans, 2) << "without plan_reads every shape counts";
}

TEST_F(PreparedCacheTest, prepares_for_the_facts_that_plan_reads_lists_and_no_other) {
  implement({{{OPMUX_FACT_DIM, "H"}, {OPMUX_FACT_SCALAR, "n"}}});
  for (int64_t rows = 1; rows < 9; ++rows) ASSERT_TRUE(call(rows, 8).ok());
  EXPECT_EQ(preparing.plans, 1);
  ASSERT_TRUE(call(1, 16).ok());
  EXPECT_EQ(preparing.plans, 2);
  const Rows t(1, 16);
  for (const int n : {1, 1, 0, 1}) ASSERT_TRUE(op(t.y, t.x, n).ok());
  EXPECT_EQ(preparing.plans, 3);
}

TEST_F(PreparedCacheTest, prepares_for_each_number_of_threads_that_calls_allow) {
  implement({{{OPMUX_FACT_DIM, "H"}}});
  const Rows t(2, 8);
  for (const int32_t threads : {1, 2, 1, 2}) {
    ASSERT_TRUE(op.with({.max_threads = threads})(t.y, t.x).ok());
  }
  EXPECT_EQ(preparing.plans, 2);
}

TEST_F(PreparedCacheTest, a_plan_is_bound_to_the_next_candidate_if_the_first_cannot_prepare) {
  implement();
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows t(2, 8), wide(2, 16);
  preparing.ends = OPMUX_DECLINED;
  Plan plan = op.bind(t.y, t.x).value();
  EXPECT_EQ(plan.implementation(), "copy/plain.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(t.y, t.x).ok()); }), "copy/plain.one");
  EXPECT_EQ(stage.stats("copy/prep.one").declined, 1u);
  EXPECT_EQ(stage.stats("copy/plain.one").calls, 1u);
  EXPECT_EQ(plan(wide.y, wide.x).code(), Code::outside_plan)
      << "the decline holds for the bound arguments only";
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"vendor"}}).ok());
  EXPECT_EQ(plan.state(), Plan::State::current) << "the first still declines these arguments";
  preparing.ends = OPMUX_OK;
  ASSERT_TRUE(plan.refresh().ok());
  EXPECT_EQ(plan.implementation(), "copy/prep.one");
}

TEST_F(PreparedCacheTest, binding_fails_if_policy_is_strict_or_no_candidate_is_left) {
  implement();
  const Rows t(2, 8);
  preparing.ends = OPMUX_DECLINED;
  EXPECT_EQ(op.bind(t.y, t.x).error().code(), Code::declined);
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(stage.runtime.policy().set({.strict = true}).ok());
  EXPECT_EQ(op.bind(t.y, t.x).error().code(), Code::declined);
}

TEST_F(PreparedCacheTest, binding_tries_once_more_when_memory_was_short) {
  implement();
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows t(2, 8);
  preparing.ends = OPMUX_RESOURCE;
  EXPECT_EQ(op.bind(t.y, t.x).value().implementation(), "copy/plain.one");
  EXPECT_EQ(preparing.plans, 2);
}

TEST_F(PreparedCacheTest, runs_with_the_state_that_was_prepared_for_the_arguments) {
  implement({{{OPMUX_FACT_DIM, "H"}}});
  int seen = 0;
  preparing.running = [&](void* prepared) {
    seen = *static_cast<int*>(prepared);
    return OPMUX_OK;
  };
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(call(2, 8).ok());
    EXPECT_EQ(seen, 1);
    ASSERT_TRUE(call(2, 16).ok());
    EXPECT_EQ(seen, 2);
  }
}

TEST_F(PreparedCacheTest, eight_threads_that_want_the_same_state_build_it_once) {
  implement();
  constexpr int kThreads = 8;
  std::barrier start(kThreads);
  std::atomic<int> waiting{0};
  // Planning continues until the other threads can be expected to wait for it.
  preparing.while_planning = [&] {
    while (waiting.load() < kThreads) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      ++waiting;
      if (call(2, 8).ok()) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads);
  EXPECT_EQ(preparing.plans, 1);
}

TEST_F(PreparedCacheTest, a_failure_to_prepare_is_not_remembered) {
  implement();
  preparing.ends = OPMUX_FAILED;
  const Status failed = call(2, 8);
  EXPECT_EQ(failed.code(), Code::failed);
  EXPECT_NE(failed.message().find("no room"), std::string_view::npos) << failed.message();
  EXPECT_EQ(stage.stats("copy/prep.one").failed, 1u);
  preparing.ends = OPMUX_OK;
  EXPECT_TRUE(call(2, 8).ok());
  EXPECT_EQ(preparing.plans, 2);
}

TEST_F(PreparedCacheTest, a_plan_function_that_returns_an_odd_number_failed) {
  implement();
  preparing.ends = 77;
  EXPECT_EQ(call(2, 8).code(), Code::failed);
  const Rows t;
  EXPECT_EQ(op.bind(t.y, t.x).error().code(), Code::failed);
}

TEST_F(PreparedCacheTest, a_serial_implementation_gets_a_state_per_thread) {
  implement({{{OPMUX_FACT_DIM, "H"}}}, OPMUX_IMPL_SERIAL);
  std::set<int> seen;
  preparing.running = [&](void* prepared) {
    seen.insert(*static_cast<int*>(prepared));
    return OPMUX_OK;
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call(2, 8).ok());
  std::thread([&] {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(call(2, 8).ok());
  }).join();
  EXPECT_EQ(preparing.plans, 2);
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(PreparedCacheTest, a_bound_plan_of_a_serial_implementation_has_a_separate_state) {
  implement({{{OPMUX_FACT_DIM, "H"}}}, OPMUX_IMPL_SERIAL);
  std::vector<int> seen;
  preparing.running = [&](void* prepared) {
    seen.push_back(*static_cast<int*>(prepared));
    return OPMUX_OK;
  };
  const Rows t;
  ASSERT_TRUE(op(t.y, t.x).ok());
  {
    Plan first = op.bind(t.y, t.x).value(), second = op.bind(t.y, t.x).value();
    std::thread([&] { EXPECT_TRUE(first(t.y, t.x).ok()); }).join();
    EXPECT_TRUE(second(t.y, t.x).ok());
    EXPECT_TRUE(first(t.y, t.x).ok());
    ASSERT_TRUE(op(t.y, t.x).ok());
    EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3, 2, 1));
  }
  EXPECT_EQ(preparing.alive, 1) << "a bound plan's state is destroyed with it";
  preparing.ends = OPMUX_RESOURCE;
  EXPECT_EQ(op.bind(t.y, t.x).error().code(), Code::resource);
}

TEST_F(PreparedCacheTest, the_least_recently_used_state_is_evicted_and_rebuilt) {
  implement({{{OPMUX_FACT_SCALAR, "n"}}});
  const Rows t;
  constexpr int kMost = dispatch::PreparedCache::kCapacity;
  for (int n = 0; n < kMost; ++n) ASSERT_TRUE(op(t.y, t.x, n).ok());
  EXPECT_EQ(preparing.plans, kMost);
  EXPECT_EQ(preparing.frees, 0);
  ASSERT_TRUE(op(t.y, t.x, kMost).ok());
  EXPECT_EQ(preparing.frees, 1) << "no plan holds the oldest state";
  ASSERT_TRUE(op(t.y, t.x, kMost - 1).ok());
  EXPECT_EQ(preparing.plans, kMost + 1) << "the most recent states are cached";
  ASSERT_TRUE(op(t.y, t.x, 0).ok());
  EXPECT_EQ(preparing.plans, kMost + 2) << "the oldest state was evicted";
}

TEST_F(PreparedCacheTest, an_evicted_state_lives_while_a_call_is_inside) {
  implement({{{OPMUX_FACT_SCALAR, "n"}}});
  const Rows t;
  ASSERT_TRUE(op(t.y, t.x, 0).ok());
  std::barrier step(2);
  std::atomic<bool> hold{true};
  preparing.running = [&](void* prepared) {
    if (hold.exchange(false)) {
      step.arrive_and_wait();
      step.arrive_and_wait();
    }
    return *static_cast<int*>(prepared) > 0 ? OPMUX_OK : OPMUX_FAILED;
  };
  std::thread inside([&] { EXPECT_TRUE(op(t.y, t.x, 0).ok()); });
  step.arrive_and_wait();
  constexpr int kMost = dispatch::PreparedCache::kCapacity;
  for (int n = 1; n <= kMost; ++n) ASSERT_TRUE(op(t.y, t.x, n).ok());
  EXPECT_EQ(preparing.frees, 0) << "the call inside holds the evicted state";
  step.arrive_and_wait();
  inside.join();
  EXPECT_EQ(preparing.frees, 1) << "the thread and its plan are gone";
}

TEST_F(PreparedCacheTest, withdrawing_frees_every_state) {
  implement();
  for (int64_t rows = 1; rows < 5; ++rows) ASSERT_TRUE(call(rows, 8).ok());
  EXPECT_EQ(preparing.alive, 4);
  ASSERT_TRUE(held.withdraw().ok());
  EXPECT_EQ(preparing.alive, 0);
}

}  // namespace
}  // namespace opmux::test
