#include <chrono>

#include "stage.hpp"

/// The numbers of circuit breakers, read from a policy text; see tools/surface.
namespace opmux::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

Options ticked_by_the_test() {
  Options options = bare();
  options.sources.own_thread = false;
  return options;
}

/// An implementation that can fail, the reference, and a policy `breaker: {...}`.
struct Ward : Stage {
  explicit Ward(const std::string& breaker) : Stage(ticked_by_the_test()) {
    op = define(kCopy);
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/plain.one", .kind = Kind::reference});
    const Status loaded =
        runtime.policy().load("opmux: 1\nbreaker: {" + breaker + "}\n", "policy.yaml");
    if (!loaded.ok()) throw Error(loaded);
    runtime.tick(seconds(1));
  }
  std::string run() {
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
  }
  RecordingKernel& fast() { return kernel("copy/fast.one"); }
  /// How many of 40 calls `fast` runs if each second one that it runs has the outcome `odd`.
  uint64_t runs_of_forty(
      const std::function<Outcome()>& odd,
      const std::function<Outcome()>& even = [] { return Outcome::ok; }) {
    fast().body = [this, odd, even](CallFrame&) { return fast().runs % 2 == 1 ? odd() : even(); };
    for (int i = 0; i < 40; ++i) run();
    return fast().runs;
  }
  /// Opens the breaker by two failures and waits until it lets probes pass.
  void open_and_wait() {
    fast().body = [](CallFrame&) { return Outcome::failed; };
    for (int i = 0; i < 2; ++i) EXPECT_EQ(run(), "copy/fast.one copy/plain.one");
    EXPECT_EQ(run(), "copy/plain.one");
    runtime.tick(seconds(100));
    fast().body = [](CallFrame&) { return Outcome::ok; };
  }

  Operator op = runtime.op("softmax").value();
  Rows rows;
};

Outcome fails() { return Outcome::failed; }

TEST(Surface, failure_rate_is_the_share_of_failures_that_opens_a_breaker) {
  EXPECT_LT(Ward("consecutive_failures: 100").runs_of_forty(fails), 40u);
  EXPECT_EQ(Ward("consecutive_failures: 100, failure_rate: 0.9").runs_of_forty(fails), 40u);
}

TEST(Surface, min_calls_is_the_number_of_outcomes_from_which_a_rate_counts) {
  EXPECT_GE(Ward("consecutive_failures: 100").runs_of_forty(fails), 20u);
  EXPECT_LT(Ward("consecutive_failures: 100, min_calls: 4").runs_of_forty(fails), 8u);
}

TEST(Surface, window_is_the_number_of_outcomes_that_a_rate_is_of) {
  EXPECT_LT(Ward("consecutive_failures: 100, window: 6").runs_of_forty(fails), 10u);
}

/// A body that takes this long and succeeds.
std::function<Outcome()> takes(microseconds time) {
  return [time] {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
    }
    return Outcome::ok;
  };
}

TEST(Surface, slow_rate_is_the_share_of_slow_calls_that_opens_a_breaker) {
  const auto slow = takes(microseconds(1'100)), quick = takes(microseconds(20));
  EXPECT_LT(Ward("slow_call: 1ms").runs_of_forty(slow, quick), 40u);
  EXPECT_EQ(Ward("slow_call: 1ms, slow_rate: 0.95").runs_of_forty(slow, quick), 40u);
}

TEST(Surface, permits_is_the_number_of_probes_that_run_at_a_time) {
  const auto probes = [](const std::string& permits) {
    Ward ward("consecutive_failures: 2" + permits);
    ward.open_and_wait();
    int depth = 0;
    ward.fast().body = [&](CallFrame&) {
      const Rows more;
      if (++depth < 5) (void)ward.op(more.y, more.x);
      return Outcome::ok;
    };
    return ward.run();
  };
  EXPECT_EQ(probes(""), "copy/fast.one copy/fast.one copy/fast.one copy/plain.one");
  EXPECT_EQ(probes(", permits: 1"), "copy/fast.one copy/plain.one");
}

TEST(Surface, successes_is_the_number_of_probes_that_close_a_breaker) {
  const auto after_one_probe = [](const std::string& successes) {
    Ward ward("consecutive_failures: 2" + successes);
    ward.open_and_wait();
    EXPECT_EQ(ward.run(), "copy/fast.one");
    return ward.runtime.health().report().breakers.at(0).state;
  };
  EXPECT_EQ(after_one_probe(""), BreakerState::half_open);
  EXPECT_EQ(after_one_probe(", successes: 1"), BreakerState::closed);
}

}  // namespace
}  // namespace opmux::test
