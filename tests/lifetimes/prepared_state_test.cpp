#include "dispatch/plan/prepared_cache.hpp"

#include <barrier>
#include <set>
#include <thread>

#include "base/locks.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// An implementation with prepared states. Its plan_free() keeps the memory, so that a run can
/// notice that its state was freed.
struct Preparing {
  struct State {
    std::atomic<bool> freed{false};
    int64_t rows = 0;
  };
  std::atomic<int> made{0}, freed{0}, used_after_free{0};
  std::function<void(State&)> planning = [](State&) {};
  std::function<void(State&)> running = [](State&) {};
  base::ForkGuarded<std::vector<std::unique_ptr<State>>> memory;

  static int32_t plan(void* self, const opmux_call* call, void** prepared) {
    auto& mine = *static_cast<Preparing*>(self);
    auto state = std::make_unique<State>();
    state->rows = call->args[0].value.tensor->shape[0];
    *prepared = state.get();
    ++mine.made;
    State& made = *state;
    mine.memory.with([&](auto& all) { all.push_back(std::move(state)); });
    mine.planning(made);
    return OPMUX_OK;
  }
  static void plan_free(void* self, void* prepared) {
    auto& mine = *static_cast<Preparing*>(self);
    static_cast<State*>(prepared)->freed = true;
    ++mine.freed;
  }
  static int32_t run(void* self, const opmux_call* call) {
    auto& mine = *static_cast<Preparing*>(self);
    auto& state = *static_cast<State*>(call->prepared);
    mine.running(state);
    if (state.freed) ++mine.used_after_free;
    return OPMUX_OK;
  }
  int alive() const { return made - freed; }
};

struct PreparedStateLifetime : testing::Test {
  void implement(uint32_t flags = 0) {
    held = stage.runtime
               .implement({.id = "copy/prep.one",
                           .kind = Kind::default_,
                           .kernel = {.user_data = &preparing,
                                      .run = Preparing::run,
                                      .plan = Preparing::plan,
                                      .plan_free = Preparing::plan_free},
                           .flags = flags})
               .value();
  }
  void call(int64_t rows) {
    const Rows t(rows, 8);
    EXPECT_TRUE(op(t.y, t.x).ok());
  }
  void reload() {
    boost = !boost;
    ASSERT_TRUE(
        stage.runtime.policy()
            .load(boost ? "opmux: 1\nrules: [{op: copy, prefer: [default]}]\n" : "opmux: 1\n")
            .ok());
  }
  Preparing preparing;
  Stage stage;
  Operator op = stage.define(kCopy);
  Registration held;
  bool boost = false;
};

constexpr int kCapacity = dispatch::PreparedCache::kCapacity;

TEST_F(PreparedStateLifetime, a_hot_call_keeps_its_state_over_a_reload_and_an_eviction) {
  implement();
  std::barrier step(2);
  std::atomic<bool> hold{false};
  preparing.running = [&](Preparing::State& state) {
    if (state.rows != 7 || !hold.exchange(false)) return;
    step.arrive_and_wait();
    step.arrive_and_wait();
  };
  std::thread inside([&] {
    call(7);
    call(7);
    hold = true;
    call(7);
  });
  step.arrive_and_wait();
  reload();
  for (int i = 0; i < 2 * kCapacity; ++i) call(100 + i);
  step.arrive_and_wait();
  inside.join();
  EXPECT_EQ(preparing.used_after_free, 0);
}

TEST_F(PreparedStateLifetime, a_state_that_is_evicted_while_plan_runs_serves_the_calls_that_wait) {
  implement();
  std::barrier step(2);
  preparing.planning = [&](Preparing::State& state) {
    if (state.rows != 7) return;
    step.arrive_and_wait();
    step.arrive_and_wait();
  };
  std::thread builder([&] {
    for (int i = 0; i < 3; ++i) call(7);
  });
  step.arrive_and_wait();
  for (int i = 0; i < kCapacity + 10; ++i) call(100 + i);
  step.arrive_and_wait();
  builder.join();
  EXPECT_EQ(preparing.used_after_free, 0);
}

TEST_F(PreparedStateLifetime, eviction_frees_at_once_while_another_thread_calls_all_the_time) {
  implement();
  // The other thread is inside a call whenever this one evicts, but never for long.
  std::atomic<bool> stop{false};
  std::atomic<int> ticks{0};
  preparing.running = [&](Preparing::State& state) {
    const int before = ticks;  // read first, so that the last tick is not missed
    if (state.rows == 7 && !stop) ticks.wait(before);
  };
  std::thread busy([&] {
    while (!stop) call(7);
  });
  for (int i = 0; i < 4 * kCapacity; ++i) {
    call(100 + i);
    ++ticks;
    ticks.notify_all();
  }
  // At most one state for each cached plan of the two threads beyond the cache.
  EXPECT_LE(preparing.alive(), kCapacity + 8);
  stop = true;
  ++ticks;
  ticks.notify_all();
  busy.join();
  EXPECT_EQ(preparing.used_after_free, 0);
}

TEST_F(PreparedStateLifetime, an_eviction_leaves_the_plans_of_other_shapes_alone) {
  implement();

  call(7);
  for (int i = 0; i < kCapacity - 1; ++i) call(100 + i);
  call(7);
  const int before = preparing.made;
  // Evicts the oldest shape; the plan for 7 rows stays hot.
  call(5000);
  call(7);
  EXPECT_EQ(preparing.made, before + 1);
}

TEST_F(PreparedStateLifetime, withdraw_frees_the_states_in_plans_of_idle_threads) {
  implement();
  std::barrier step(2);
  std::thread idle([&] {
    call(7);
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  call(8);
  EXPECT_EQ(preparing.alive(), 2);
  EXPECT_TRUE(held.withdraw().ok());
  EXPECT_EQ(preparing.alive(), 0);
  step.arrive_and_wait();
  idle.join();
  EXPECT_EQ(preparing.freed, 2) << "each state is freed once";
}

TEST_F(PreparedStateLifetime, a_thread_that_ends_frees_the_states_that_only_its_plans_hold) {
  implement();
  std::thread([&] { call(7); }).join();
  for (int i = 0; i < kCapacity; ++i) call(100 + i);
  EXPECT_EQ(preparing.alive(), kCapacity);
}

TEST_F(PreparedStateLifetime, a_serial_implementation_never_shares_a_state_with_a_later_thread) {
  implement(OPMUX_IMPL_SERIAL);
  std::set<const void*> seen;
  preparing.running = [&](Preparing::State& state) { seen.insert(&state); };
  // A later thread may get the address of the first one's data, but never its number.
  for (int i = 0; i < 8; ++i) std::thread([&] { call(7); }).join();
  EXPECT_EQ(seen.size(), 8u);
}

}  // namespace
}  // namespace opmux::test
