#include "stage.hpp"

#include <barrier>
#include <thread>

namespace opmux::test {
namespace {

struct TwoImplementations : Stage {
  TwoImplementations() : op(define(kCopy)) {
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  Operator op;
};

TEST(Defects, a_scope_in_one_thread_changes_what_another_runs) {
  TwoImplementations stage;
  std::barrier step(2);
  std::thread other([&] {
    const Rows rows;
    const auto called = [&] { return ran_by([&] { ASSERT_TRUE(stage.op(rows.y, rows.x).ok()); }); };
    EXPECT_EQ(called(), "copy/fast.one");
    step.arrive_and_wait();  // The scope begins.
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(called(), "copy/fast.one");
    step.arrive_and_wait();  // The scope ends.
  });
  const Rows rows;
  const auto called = [&] { return ran_by([&] { ASSERT_TRUE(stage.op(rows.y, rows.x).ok()); }); };
  EXPECT_EQ(called(), "copy/fast.one");
  {
    const PolicyScope only_reference(stage.runtime, {.require = {"reference"}});
    ASSERT_TRUE(only_reference.status().ok());
    EXPECT_EQ(called(), "copy/plain.one");
    step.arrive_and_wait();
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(called(), "copy/plain.one");
    step.arrive_and_wait();
    EXPECT_EQ(called(), "copy/plain.one");
  }
  EXPECT_EQ(called(), "copy/fast.one");
  other.join();
}

TEST(Defects, a_scope_of_one_runtime_changes_what_another_runs) {
  TwoImplementations here, there;
  const Rows rows;
  std::barrier step(2);
  // Both runtimes have an active scope, which is their first.
  std::thread other([&] {
    const PolicyScope scope(there.runtime, {.require = {"reference"}});
    EXPECT_EQ(ran_by([&] { ASSERT_TRUE(there.op(rows.y, rows.x).ok()); }), "copy/plain.one");
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  {
    const PolicyScope scope(here.runtime, {.deny = {"impl:copy/fast.one"}});
    EXPECT_EQ(ran_by([&] { ASSERT_TRUE(here.op(rows.y, rows.x).ok()); }), "copy/plain.one");
    EXPECT_EQ(ran_by([&] { ASSERT_TRUE(there.op(rows.y, rows.x).ok()); }), "copy/fast.one");
  }
  step.arrive_and_wait();
  other.join();
}

// The sequence number is even while nothing changes. A call that saw the same even number before
// and after must have run the implementation in force under that number.
TEST(Defects, a_racing_policy_change_leaves_the_old_implementation_cached) {
  TwoImplementations stage;
  std::atomic<uint64_t> sequence{0};
  std::atomic<bool> stop{false};
  const auto in_force = [](uint64_t s) { return s % 4 == 0 ? "copy/fast.one" : "copy/plain.one"; };
  std::atomic<uint64_t> judged{0};
  const auto read = [&] {
    const Rows rows;
    while (!stop.load()) {
      const uint64_t before = sequence.load();
      const std::string ran = ran_by([&] { ASSERT_TRUE(stage.op(rows.y, rows.x).ok()); });
      if (before % 2 != 0 || before != sequence.load()) continue;
      ASSERT_EQ(ran, in_force(before)) << "at change " << before;
      judged.fetch_add(1);
    }
  };
  std::thread first(read), second(read);
  const Rows rows;
  for (int i = 0; i < 400; ++i) {
    sequence.fetch_add(1);
    const bool deny_fast = i % 2 == 0;
    ASSERT_TRUE(stage.runtime.policy()
                    .set(deny_fast ? Policy{.deny = {"impl:copy/fast.one"}} : Policy{})
                    .ok());
    const uint64_t now = sequence.fetch_add(1) + 1;
    CallReport report;
    ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
    ASSERT_EQ(report.implementation, in_force(now));
    ASSERT_EQ(ran_by([&] { ASSERT_TRUE(stage.op(rows.y, rows.x).ok()); }), in_force(now));
    if (i % 16 == 0) std::this_thread::yield();
  }
  while (judged.load() < 100) std::this_thread::yield();
  stop.store(true);
  first.join();
  second.join();
}

// Both operations end in a publication; the last one must publish the result of both.
TEST(Defects, a_registration_beside_a_policy_change_brings_the_old_policy_back) {
  TwoImplementations stage;
  const Rows rows;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(stage.runtime.policy().reset().ok());
    std::barrier start(2);
    std::thread registering([&] {
      start.arrive_and_wait();
      stage.add({.id = "copy/third.one", .kind = Kind::default_, .priority = 10});
    });
    start.arrive_and_wait();
    ASSERT_TRUE(stage.runtime.policy().set({.deny = {"impl:copy/fast.one"}}).ok());
    registering.join();
    ASSERT_EQ(ran_by([&] { ASSERT_TRUE(stage.op(rows.y, rows.x).ok()); }), "copy/plain.one");
    ASSERT_EQ(stage.op.explain(rows.y, rows.x).candidates.size(), 3u);
    ASSERT_TRUE(stage.kernel("copy/third.one").registration.withdraw().ok());
  }
}

}  // namespace
}  // namespace opmux::test
