#include "dispatch/reclaim/reclaimer.hpp"

#include <barrier>
#include <thread>

#include "dispatch/plan/cached_plan.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"
#include "reclaim.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Counts the objects that exist.
class Counted final : public dispatch::Retired {
 public:
  Counted(int& alive, uint64_t plan, bool slow_calls = true)
      : alive_(alive), plan_(plan), slow_calls_(slow_calls) {
    ++alive_;
  }
  ~Counted() override { --alive_; }
  bool owns_plan(uint64_t plan_id) const override { return plan_id == plan_; }
  bool slow_calls_use_it() const override { return slow_calls_; }

 private:
  int& alive_;
  uint64_t plan_;
  bool slow_calls_;
};

template <class... Arguments>
void retire(dispatch::Reclaimer& reclaimer, int& alive, const Arguments&... arguments) {
  std::vector<std::unique_ptr<dispatch::Retired>> items;
  items.push_back(std::make_unique<Counted>(alive, arguments...));
  reclaimer.retire(std::move(items));
  collect(reclaimer);
}

TEST(ReclaimLifetime, a_slow_call_blocks_only_the_state_of_the_plan_that_it_runs) {
  dispatch::Reclaimer reclaimer;
  int own = 0, other = 0;
  {
    const dispatch::SlowPathGuard call;
    retire(reclaimer, own, 7);
    retire(reclaimer, other, 8);
    {
      const dispatch::SlowPathGuard::Pin kernel = call.pin(7);
      collect(reclaimer);
      EXPECT_EQ(own, 1) << "the plan that runs belongs to this state";
      EXPECT_EQ(other, 0) << "the call chose another state";
      retire(reclaimer, other, 8);
      EXPECT_EQ(other, 0) << "a call that has chosen does not read other states";
    }
    collect(reclaimer);
    EXPECT_EQ(own, 1) << "the call goes on after its kernel";
  }
  collect(reclaimer);
  EXPECT_EQ(own, 0);
}

TEST(ReclaimLifetime, a_state_retired_while_the_kernel_runs_outlives_the_rest_of_the_call) {
  dispatch::Reclaimer reclaimer;
  int own = 0;
  {
    const dispatch::SlowPathGuard call;
    {
      const dispatch::SlowPathGuard::Pin kernel = call.pin(7);
      retire(reclaimer, own, 7);
    }
    collect(reclaimer);
    EXPECT_EQ(own, 1);
  }
  {
    const dispatch::SlowPathGuard later;
    const dispatch::SlowPathGuard::Pin kernel = later.pin(7);
    collect(reclaimer);
    EXPECT_EQ(own, 0) << "a later call with the same mark is another call";
  }
}

TEST(ReclaimLifetime, objects_that_slow_calls_own_do_not_wait_for_them) {
  dispatch::Reclaimer reclaimer;
  int packs = 0;
  const dispatch::SlowPathGuard call;
  retire(reclaimer, packs, 7, false);
  EXPECT_EQ(packs, 0);
  const dispatch::SlowPathGuard::Pin kernel = call.pin(7);
  retire(reclaimer, packs, 7, false);
  EXPECT_EQ(packs, 0);
}

TEST(ReclaimLifetime, a_nested_call_is_told_from_the_next_one_of_the_same_plan) {
  dispatch::Reclaimer reclaimer;
  int own = 0;
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  const dispatch::SlowPathGuard around;
  const dispatch::SlowPathGuard::Pin kernel = around.pin(9);
  {
    const dispatch::NestedCallGuard call(block);
    call.mark(7);
    retire(reclaimer, own, 7);
    EXPECT_EQ(own, 1) << "the nested call may use it";
  }
  {
    const dispatch::NestedCallGuard call(block);
    call.mark(7);
    collect(reclaimer);
    EXPECT_EQ(own, 0) << "this call began after it was retired";
  }
}

TEST(ReclaimLifetime, the_destructor_of_an_implementation_may_use_the_runtime) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H])");
  bool destroyed = false;
  auto last = std::shared_ptr<void>(nullptr, [&](void*) {
    destroyed = !stage.runtime.stats().empty();  // takes the lock of publications
  });
  Registration first =
      stage.runtime
          .implement({.id = "copy/first.one",
                      .kind = Kind::default_,
                      .run = [last = std::move(last)](CallFrame&) { return Outcome::ok; }})
          .value();
  stage.add({.id = "copy/second.one", .kind = Kind::default_});
  const Rows rows;
  EXPECT_TRUE(op(rows.y, rows.x).ok());
  EXPECT_TRUE(first.withdraw().ok());
  EXPECT_TRUE(destroyed);
}

TEST(ReclaimLifetime, the_destructor_of_an_implementation_may_withdraw_another) {
  Stage stage;
  stage.define("copy(out Tensor y[..., H], Tensor x[..., H])");
  Registration inner = stage.runtime
                           .implement({.id = "copy/inner.one",
                                       .kind = Kind::default_,
                                       .run = [](CallFrame&) { return Outcome::ok; }})
                           .value();
  Status withdrawn{Code::failed, "test.not_destroyed", ""};
  auto last = std::shared_ptr<void>(nullptr, [&](void*) { withdrawn = inner.withdraw(); });
  Registration outer =
      stage.runtime
          .implement({.id = "copy/outer.one",
                      .kind = Kind::default_,
                      .run = [last = std::move(last)](CallFrame&) { return Outcome::ok; }})
          .value();
  EXPECT_TRUE(outer.withdraw().ok());
  EXPECT_TRUE(withdrawn.ok()) << withdrawn.message();
}

TEST(ReclaimLifetime, a_blocked_first_call_does_not_keep_the_states_of_other_operators) {
  Stage stage;
  constexpr int kReloads = 50;
  const Operator slow = stage.define("slow(out Tensor y[N], Tensor x[N])");
  const Operator copy = stage.define(kCopy);
  std::barrier step(2);
  stage.add({.id = "slow/blocks.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               step.arrive_and_wait();
               step.arrive_and_wait();
               return Outcome::ok;
             }});
  stage.add({.id = "copy/plain.one", .kind = Kind::default_});
  const Rows t;
  std::thread blocked([&] { EXPECT_TRUE(slow(t.w, t.w).ok()); });
  step.arrive_and_wait();
  for (int i = 0; i < kReloads; ++i) {
    ASSERT_TRUE(stage.runtime.policy()
                    .set({.rules = {{.op = "copy", .boost = {{"default", 1.0 + i}}}}})
                    .ok());
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copy(t.y, t.x).ok()); }), "copy/plain.one");
  }
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
  step.arrive_and_wait();
  blocked.join();
}

/// An implementation that packs a constant and counts its packs.
struct Packing {
  std::atomic<int> alive{0}, used_after_free{0};
  std::function<void()> running = [] {};
  static int32_t create(void* self, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
    ++static_cast<Packing*>(self)->alive;
    *instance = new std::atomic<bool>(true);
    return OPMUX_OK;
  }
  static void destroy(void* self, void* instance) {
    --static_cast<Packing*>(self)->alive;
    *static_cast<std::atomic<bool>*>(instance) = false;
    static_cast<Packing*>(self)->memory.emplace_back(static_cast<std::atomic<bool>*>(instance));
  }
  static int32_t run(void* self, const opmux_call* call) {
    auto& mine = *static_cast<Packing*>(self);
    auto& whole = *static_cast<std::atomic<bool>*>(call->instance);
    mine.running();
    if (!whole) ++mine.used_after_free;
    return OPMUX_OK;
  }
  std::vector<std::unique_ptr<std::atomic<bool>>> memory;
};

TEST(ReclaimLifetime, packs_do_not_wait_for_calls_that_begin_later) {
  Packing packing;
  Stage stage;
  const Operator op =
      stage.define("scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])");
  const Registration held = stage.runtime
                                .implement({.id = "scale/pack.one",
                                            .kind = Kind::default_,
                                            .kernel = {.user_data = &packing,
                                                       .run = Packing::run,
                                                       .create = Packing::create,
                                                       .destroy = Packing::destroy}})
                                .value();
  Rows mine, theirs;
  Constant changing = stage.runtime.constant(mine.w).value();
  Constant fixed = stage.runtime.constant(theirs.w).value();
  // The other thread is inside a call whenever this one looks, but never inside the same call.
  std::barrier step(2);
  std::atomic<bool> stop{false};
  std::atomic<std::thread::id> steps_in{};
  packing.running = [&] {
    if (steps_in.load() != std::this_thread::get_id()) return;
    step.arrive_and_wait();
    step.arrive_and_wait();
  };
  std::thread busy([&] {
    EXPECT_TRUE(op(theirs.y, theirs.x, fixed).ok());
    EXPECT_TRUE(op(theirs.y, theirs.x, fixed).ok());
    steps_in = std::this_thread::get_id();
    while (!stop) EXPECT_TRUE(op(theirs.y, theirs.x, fixed).ok());
  });
  for (int i = 0; i < 100; ++i) {
    step.arrive_and_wait();
    EXPECT_TRUE(op(mine.y, mine.x, changing).ok());
    changing.changed();
    if (i == 99) stop = true;
    step.arrive_and_wait();
  }
  busy.join();
  changing.changed();
  EXPECT_LE(packing.alive, 3);
  EXPECT_EQ(packing.used_after_free, 0);
}

}  // namespace
}  // namespace opmux::test
