#include <barrier>
#include <set>
#include <thread>

#include "dispatch/call/thread_block.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

TEST(ThreadLifetime, numbers_of_threads_are_never_reused) {
  std::set<uint64_t> numbers;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      dispatch::own_thread_block();
      numbers.insert(dispatch::thread_number);
    }).join();
  }
  EXPECT_EQ(numbers.size(), 100u);
}

TEST(ThreadLifetime, a_bound_plan_marks_in_the_slot_of_the_thread_that_runs_it) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  std::atomic<int> elsewhere{0};
  stage.add({.id = "copy/plain.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               const dispatch::ThreadBlock& block = *dispatch::thread_block;
               if (block.depth() == 0) ++elsewhere;
               return Outcome::ok;
             }});
  const Rows t;
  Plan plan = op.bind(t.y, t.x).value();
  for (int round = 0; round < 200; ++round) {
    // Two threads at a time, which swap the addresses that the threads of the last round had.
    std::barrier step(2);
    const auto body = [&](bool first) {
      if (first) dispatch::own_thread_block();
      step.arrive_and_wait();
      if (!first) dispatch::own_thread_block();
      step.arrive_and_wait();
      if (first == (round % 2 == 0)) {
        EXPECT_TRUE(plan.prepare(t.y, t.x).ok());
        EXPECT_TRUE(plan.run_unchecked().ok());
      }
      step.arrive_and_wait();
    };
    std::thread one([&] { body(true); }), two([&] { body(false); });
    one.join();
    two.join();
  }
  EXPECT_EQ(elsewhere, 0);
}

size_t listed_threads() {
  size_t count = 0;
  dispatch::for_each_thread([&](dispatch::ThreadBlock&) { ++count; });
  return count;
}

TEST(ThreadLifetime, a_call_in_a_thread_local_destructor_leaves_nothing_behind) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  RecordingKernel& kernel = stage.add({.id = "copy/plain.one", .kind = Kind::default_});
  struct CallsAtTheEnd {
    const Operator* op = nullptr;
    bool ok = true;
    ~CallsAtTheEnd() {
      const Rows t;
      if (op != nullptr) ok = (*op)(t.y, t.x).ok();
      EXPECT_TRUE(ok);
    }
  };
  const size_t before = listed_threads();
  std::thread([&] {
    thread_local CallsAtTheEnd last;  // destroyed after the thread's data of the engine
    last.op = &op;
    const Rows t;
    EXPECT_TRUE(op(t.y, t.x).ok());
  }).join();
  EXPECT_EQ(kernel.runs, 2u);
  EXPECT_EQ(listed_threads(), before);
}

}  // namespace
}  // namespace opmux::test
