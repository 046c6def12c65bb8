#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "protocol.hpp"

namespace litmus {
namespace {

constexpr auto kNothing = [](const Line&) {};

class Litmus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!register_membarrier()) GTEST_SKIP() << "this kernel has no private expedited membarrier";
  }
};

// One reader makes `calls` calls of operator 0 and pauses at the given stops. At the first stop the
// operator is republished; at every stop the writer reclaims what it can. Returns the number of
// calls that found a freed state.
template <Fault kFault>
int damaged_calls(bool warm, int calls, const std::deque<Point>& stops) {
  Runtime<kFault> runtime;
  Gate gate(stops);
  int damaged = 0;
  std::thread reader([&] {
    ThreadScope scope(runtime);
    if (warm) runtime.call(scope.block, 0, kNothing);
    scope.block.gate = &gate;
    for (int i = 0; i < calls; ++i) {
      runtime.call(scope.block, 0, [&](const Line& line) { damaged += line.intact() ? 0 : 1; });
    }
  });
  for (std::size_t i = 0; i < stops.size(); ++i) {
    gate.await();
    if (i == 0) runtime.publish(0);
    runtime.reclaim();
    gate.open();
  }
  reader.join();
  runtime.reclaim();
  EXPECT_EQ(runtime.retired(), 0u);
  return damaged;
}

TEST_F(Litmus, a_reader_overtaken_at_any_point_finds_its_state_whole) {
  EXPECT_EQ(damaged_calls<Fault::none>(true, 2, {Point::marked}), 0);
  EXPECT_EQ(damaged_calls<Fault::none>(true, 2, {Point::checked}), 0);
  EXPECT_EQ(damaged_calls<Fault::none>(true, 2, {Point::entered}), 0);
  EXPECT_EQ(damaged_calls<Fault::none>(false, 2, {Point::loaded, Point::entered}), 0);
  EXPECT_EQ(damaged_calls<Fault::none>(false, 2, {Point::loaded, Point::marked}), 0);
}

TEST_F(Litmus, a_mark_set_after_the_check_is_caught) {
  EXPECT_GT(damaged_calls<Fault::mark_after_check>(true, 1, {Point::checked}), 0);
}

TEST_F(Litmus, freeing_without_a_scan_is_caught) {
  EXPECT_GT(damaged_calls<Fault::free_without_scan>(true, 1, {Point::entered}), 0);
}

TEST_F(Litmus, a_cold_mark_exchanged_for_the_plan_is_caught) {
  EXPECT_GT(damaged_calls<Fault::cold_mark_replaced>(false, 1, {Point::loaded, Point::entered}), 0);
}

TEST_F(Litmus, a_line_that_takes_its_epoch_from_the_word_is_caught) {
  EXPECT_GT(damaged_calls<Fault::epoch_from_word>(false, 2, {Point::loaded, Point::marked}), 0);
}

TEST_F(Litmus, an_idle_thread_with_a_filled_line_pins_nothing) {
  Runtime runtime;
  ThreadScope scope(runtime);
  runtime.call(scope.block, 0, kNothing);
  runtime.publish(0);
  EXPECT_EQ(runtime.retired(), 0u);
}

TEST_F(Litmus, a_call_inside_one_operator_does_not_pin_another) {
  Runtime runtime;
  ThreadScope scope(runtime);
  runtime.call(scope.block, 0, kNothing);
  runtime.call(scope.block, 0, [&](const Line&) {
    runtime.publish(1);
    EXPECT_EQ(runtime.retired(), 0u);
    runtime.publish(0);
    EXPECT_EQ(runtime.retired(), 1u);
  });
}

TEST_F(Litmus, a_line_newer_than_the_word_serves_one_cold_call) {
  Runtime runtime;
  Gate gate({Point::stored_current});
  runtime.writer_gate = &gate;
  const std::uint64_t old = runtime.word(0);
  std::thread writer([&] { runtime.publish(0); });
  gate.await();
  ThreadScope scope(runtime);
  std::uint64_t seen = 0;
  const auto note = [&](const Line& line) { seen = line.epoch; };
  runtime.call(scope.block, 0, note);
  runtime.call(scope.block, 0, note);
  EXPECT_EQ(runtime.word(0), old);
  EXPECT_GT(seen, old);
  EXPECT_EQ(scope.block.cold_calls, 2u);
  gate.open();
  writer.join();
  runtime.call(scope.block, 0, note);
  EXPECT_EQ(scope.block.hot_calls, 1u);
  EXPECT_EQ(seen, runtime.word(0));
}

TEST_F(Litmus, calls_nested_deeper_than_the_marks_stay_protected) {
  Runtime runtime;
  ThreadScope scope(runtime);
  const std::function<void(std::size_t)> nest = [&](std::size_t depth) {
    runtime.call(scope.block, 0, [&](const Line& line) {
      runtime.publish(0);
      if (depth < 2 * kLevels) nest(depth + 1);
      EXPECT_TRUE(line.intact());
    });
  };
  nest(0);
  runtime.reclaim();
  EXPECT_EQ(runtime.retired(), 0u);
  EXPECT_EQ(runtime.alive(), kOperators);
}

TEST_F(Litmus, a_full_retired_list_names_the_blocker_and_frees_nothing) {
  std::vector<Blocker> named;
  Runtime runtime([&](const std::vector<Blocker>& blockers) { named = blockers; });
  ThreadScope scope(runtime);
  runtime.call(scope.block, 0, [&](const Line& line) {
    for (std::size_t i = 0; i + 1 < kReportAt; ++i) runtime.publish(i % kOperators);
    EXPECT_TRUE(named.empty());
    for (std::size_t i = 0; i < kReportAt; ++i) runtime.publish(i % kOperators);
    ASSERT_EQ(named.size(), kReportAt);
    EXPECT_EQ(named[0].block, scope.block.number);
    EXPECT_EQ(named[0].level, 0u);
    EXPECT_TRUE(named[0].mark & kColdBit);
    EXPECT_EQ(runtime.retired(), 2 * kReportAt - 1);
    EXPECT_TRUE(line.intact());
  });
  runtime.reclaim();
  EXPECT_EQ(runtime.alive(), kOperators);
}

TEST_F(Litmus, the_death_of_a_thread_inside_a_call_lifts_its_marks) {
  Runtime runtime;
  std::thread([&] {
    ThreadScope scope(runtime);
    scope.block.marks[3].store(kColdBit | 1, std::memory_order_release);
    runtime.publish(0);
    EXPECT_EQ(runtime.retired(), 1u);
  }).join();
  ThreadScope next(runtime);  // May get the address of the thread that exited.
  next.block.marks[3].store(kColdBit | 1, std::memory_order_release);
  runtime.reclaim();
  EXPECT_EQ(runtime.retired(), 0u);
}

TEST_F(Litmus, withdraw_returns_after_the_last_call_inside_has_left) {
  Runtime runtime;
  Gate gate({Point::entered});
  std::atomic<bool> left = false;
  const std::uint64_t old = runtime.word(0);
  std::thread reader([&] {
    ThreadScope scope(runtime);
    scope.block.gate = &gate;
    runtime.call(scope.block, 0, [&](const Line&) { left = true; });
  });
  gate.await();
  std::thread remover([&] {
    runtime.withdraw(0);
    EXPECT_TRUE(left);
  });
  while (runtime.word(0) == old) std::this_thread::yield();
  gate.open();
  reader.join();
  remover.join();
}

}  // namespace
}  // namespace litmus
