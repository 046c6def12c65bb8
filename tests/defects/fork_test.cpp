#include "forked.hpp"
#include "stage.hpp"

#include <thread>

namespace opmux::test {
namespace {

/// Takes every lock of a runtime in turn until it is stopped.
class Busy {
 public:
  explicit Busy(std::function<void(int)> work)
      : thread_([this, work = std::move(work)] {
          for (int i = 0; !stop_.load(); ++i) {
            work(i);
            rounds_.fetch_add(1);
          }
        }) {
    while (rounds_.load() == 0) std::this_thread::yield();
  }
  ~Busy() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::thread thread_;
};

TEST(Defects, a_fork_while_another_thread_holds_a_lock_deadlocks_the_child) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"copy/extra.*"}}).ok());
  const Busy busy([&](int i) {
    const Rows rows;
    (void)op(rows.y, rows.x);
    auto extra = stage.runtime.implement(
        {.id = "copy/extra.one", .kind = Kind::default_, .priority = 900, .run = [](CallFrame&) {
           return Outcome::ok;
         }});
    (void)stage.runtime.tag("tag" + std::to_string(i % 100));
    (void)stage.runtime.stats();
    const PolicyScope scope(stage.runtime, {.prefer = {i % 2 != 0 ? "reference" : "vendor"}});
    (void)stage.runtime.plugins().list();
  });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(true_in_forked_child([&] {
      const Rows rows;
      const auto called = [&] { return ran_by([&] { (void)op(rows.y, rows.x); }); };
      if (called() != "copy/fast.one") return false;
      // Registered before the fork and again here: not a duplicate, and the deny rule still
      // applies.
      stage.add({.id = "copy/child.one", .kind = Kind::default_, .priority = 800});
      if (called() != "copy/child.one") return false;
      stage.add({.id = "copy/extra.two", .kind = Kind::default_, .priority = 950});
      if (called() != "copy/child.one") return false;
      const PolicyScope scope(stage.runtime, {.require = {"reference"}});
      return called() == "copy/plain.one";
    })) << "fork "
        << i;
  }
}

TEST(Defects, registering_again_after_a_fork_is_a_duplicate) {
  ASSERT_TRUE(true_in_forked_child([] {
    Stage stage;
    const Operator op = stage.define(kCopy);
    stage.add({.id = "copy/fast.one", .kind = Kind::default_});
    const Rows rows;
    return true_in_forked_child([&] {
      // Defining the same text again is allowed, and a second runtime has a separate registry.
      if (!stage.runtime.define(kCopy).ok()) return false;
      Stage second;
      const Operator same = second.define(kCopy);
      second.add({.id = "copy/fast.one", .kind = Kind::default_});
      return ran_by([&] { (void)op(rows.y, rows.x); }) == "copy/fast.one" &&
             ran_by([&] { (void)same(rows.y, rows.x); }) == "copy/fast.one";
    });
  }));
}

// ThreadSanitizer's internal locks do not survive a fork during another thread's allocation.
#ifndef OPMUX_THREAD_SANITIZER
TEST(Defects, a_fork_while_the_default_runtime_is_made_deadlocks_the_child) {
  const Busy busy([](int) {
    reset_default_runtime();
    (void)default_runtime();
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(true_in_forked_child([] {
      const Rows rows;
      CallReport report;
      return default_runtime()
                 .op("silu_and_mul")
                 ->with(report)(TensorView(const_cast<float*>(rows.out), f32, {2, 4}), rows.x)
                 .ok() &&
             report.implementation.starts_with("silu_and_mul/");
    })) << "fork "
        << i;
  }
}
#endif

}  // namespace
}  // namespace opmux::test
