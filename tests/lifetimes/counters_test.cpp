#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "dispatch/call/thread_block.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Number of results of Runtime::stats() that a test compares; the long form sets the variable.
int scrapes() {
  const char* const said = std::getenv("OPMUX_SCRAPES");
  return said == nullptr ? 2000 : std::atoi(said);
}

/// An operator with two implementations, and others whose plans make Runtime::stats() take longer.
struct CountersLifetime : testing::Test {
  CountersLifetime() {
    stage.add({.id = "copy/first.one", .kind = Kind::default_});
    stage.add({.id = "copy/other.one", .kind = Kind::reference});
    for (int i = 0; i < 50; ++i) {
      const std::string name = "other" + std::to_string(i);
      others.push_back(stage.define(name + "(out Tensor y[..., H], Tensor x[..., H])"));
      stage.add({.id = name + "/first.one", .kind = Kind::default_});
    }
  }
  void call_others() {
    const Rows rows;
    for (const Operator& other : others) ASSERT_TRUE(other(rows.y, rows.x).ok());
  }
  std::map<std::string, uint64_t> calls() const {
    std::map<std::string, uint64_t> all;
    for (const CallStats& stats : stage.runtime.stats()) all[stats.implementation] = stats.calls;
    return all;
  }
  uint64_t sum() const {
    const auto all = calls();
    return all.at("copy/first.one") + all.at("copy/other.one");
  }
  /// Compares successive statistics while `work` runs again and again in another thread. `work`
  /// returns the number of its calls of `copy`, all of which succeed.
  template <class Work>
  void compare_while(Work&& work) {
    std::atomic<bool> done{false};
    std::atomic<uint64_t> begun{0};
    uint64_t made = 0;
    std::thread busy([&] {
      while (!done.load()) made += work(begun);
    });
    std::map<std::string, uint64_t> last = calls();
    for (int i = 0; i < scrapes(); ++i) {
      const auto now = calls();
      for (const auto& [implementation, count] : last) {
        ASSERT_TRUE(now.at(implementation) >= count || stop(busy, done))
            << implementation << " went from " << count << " to " << now.at(implementation);
      }
      const uint64_t seen = now.at("copy/first.one") + now.at("copy/other.one");
      ASSERT_TRUE(seen <= begun.load() || stop(busy, done))
          << seen << " calls were counted, but only " << begun.load() << " were made";
      last = now;
    }
    stop(busy, done);
    EXPECT_EQ(sum(), made);
  }
  /// Ends the thread before a failed comparison leaves the test. Returns false.
  static bool stop(std::thread& busy, std::atomic<bool>& done) {
    done.store(true);
    if (busy.joinable()) busy.join();
    return false;
  }

  Stage stage;
  const Operator op = stage.define(kCopy);
  std::vector<Operator> others;
};

TEST_F(CountersLifetime, do_not_go_backwards_when_threads_end) {
  constexpr uint64_t kCalls = 500;
  compare_while([&](std::atomic<uint64_t>& begun) {
    begun += kCalls;
    std::thread([&] {
      const Rows rows;
      call_others();
      for (uint64_t i = 0; i < kCalls; ++i) ASSERT_TRUE(op(rows.y, rows.x).ok());
    }).join();
    return kCalls;
  });
}

TEST_F(CountersLifetime, do_not_go_backwards_when_plans_are_reused_for_other_implementations) {
  constexpr uint64_t kCalls = 200;
  const Rows rows;
  bool first = false;
  compare_while([&](std::atomic<uint64_t>& begun) {
    begun += kCalls;
    first = !first;
    const std::string kind = first ? "default" : "reference";
    EXPECT_TRUE(stage.runtime.policy().set({.prefer = {kind}}).ok());
    for (uint64_t i = 0; i < kCalls; ++i) EXPECT_TRUE(op(rows.y, rows.x).ok());
    return kCalls;
  });
}

TEST_F(CountersLifetime, do_not_go_backwards_when_bound_plans_are_destroyed) {
  constexpr uint64_t kCalls = 200;
  const Rows rows;
  compare_while([&](std::atomic<uint64_t>& begun) {
    begun += kCalls;
    Plan plan = op.bind(rows.y, rows.x).value();
    for (uint64_t i = 0; i < kCalls; ++i) EXPECT_TRUE(plan(rows.y, rows.x).ok());
    return kCalls;
  });
}

TEST_F(CountersLifetime, do_not_count_a_call_before_it_has_succeeded) {
  const Rows rows;
  bool fails = false;
  stage.kernel("copy/first.one").body = [&](CallFrame&) {
    fails = !fails;
    return fails ? Outcome::declined : Outcome::ok;
  };
  compare_while([&](std::atomic<uint64_t>& begun) {
    ++begun;
    EXPECT_TRUE(op(rows.y, rows.x).ok());
    return uint64_t{1};
  });
}

TEST_F(CountersLifetime, of_withdrawn_implementations_are_forgotten) {
  ASSERT_TRUE(op(Rows().y, Rows().x).ok());
  const Rows rows;
  for (int i = 0; i < 200; ++i) {
    Implementation next{.id = "copy/next.v" + std::to_string(i), .kind = Kind::default_};
    next.priority = 900;
    next.run = [](CallFrame&) { return Outcome::ok; };
    const Registration registration = stage.runtime.implement(next).value();
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(op(rows.y, rows.x).ok());
    ASSERT_EQ(stage.stats(next.id).calls, 3u);
  }
  EXPECT_LE(dispatch::thread_block->kept_counts.size(), 64u);
}

}  // namespace
}  // namespace opmux::test
