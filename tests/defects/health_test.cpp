#include "stage.hpp"

#include <chrono>
#include <thread>

namespace opmux::test {
namespace {

struct Ward : Stage {
  explicit Ward(Options options = bare()) : Stage(std::move(options)), op(define(kCopy)) {
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/middle.one", .kind = Kind::vendor});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  std::string run() {
    return ran_by([&] { (void)op(rows.y, rows.x); });
  }
  void all_end(Outcome outcome) {
    for (const char* id : {"copy/fast.one", "copy/middle.one", "copy/plain.one"})
      kernel(id).body = [outcome](CallFrame&) { return outcome; };
  }
  Operator op;
  Rows rows;
};

TEST(Defects, calls_with_bad_arguments_open_all_breakers_permanently) {
  for (const Outcome ending : {Outcome::invalid_argument, Outcome::declined, Outcome::resource}) {
    Ward ward;
    ward.all_end(ending);
    for (int i = 0; i < 50; ++i) (void)ward.run();
    ward.all_end(Outcome::ok);
    // Other rows of the same class: no implementation was blamed for errors of the caller or the
    // machine.
    const Rows others(2, 7);
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(ward.op(others.y, others.x).ok()); }), "copy/fast.one");
    EXPECT_TRUE(ward.runtime.health().report().breakers.empty());
  }
}

TEST(Defects, a_call_that_the_schema_refuses_counts_against_an_implementation) {
  Ward ward;
  const Rows narrow(2, 4);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(ward.op(ward.rows.y, narrow.x).code(), Code::invalid_argument);
  EXPECT_EQ(ward.run(), "copy/fast.one");
  EXPECT_TRUE(ward.runtime.health().report().breakers.empty());
}

TEST(Defects, a_failure_of_one_shape_disables_an_implementation_permanently) {
  Ward ward;
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 10; ++i) (void)ward.run();
  EXPECT_EQ(ward.run(), "copy/middle.one");
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::ok; };
  const Rows larger(2, 100);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(ward.op(larger.y, larger.x).ok()); }), "copy/fast.one");
}

TEST(Defects, health_is_recorded_but_never_consulted) {
  Ward ward;
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 100; ++i) (void)ward.run();
  EXPECT_EQ(ward.kernel("copy/fast.one").runs, 5u);
  EXPECT_EQ(ward.op.explain(ward.rows.y, ward.rows.x).chosen, "copy/middle.one");
}

TEST(Defects, half_open_lets_everything_through) {
  Options options = bare();
  options.sources.own_thread = false;
  Ward ward(options);
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 5; ++i) (void)ward.run();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  ward.runtime.tick(now + std::chrono::seconds(40));
  // Every probe waits inside the kernel until all callers have arrived.
  constexpr uint32_t kCallers = 8;
  std::atomic<uint32_t> arrived{0}, inside{0};
  ward.kernel("copy/fast.one").body = [&](CallFrame&) {
    ++inside;
    arrived.fetch_add(1);
    while (arrived.load() < kCallers) std::this_thread::yield();
    return Outcome::ok;
  };
  ward.kernel("copy/middle.one").body = [&](CallFrame&) {
    arrived.fetch_add(1);
    return Outcome::ok;
  };
  std::vector<std::thread> callers;
  for (uint32_t i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      const Rows own;
      EXPECT_TRUE(ward.op(own.y, own.x).ok());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(inside.load(), 3u);
}

TEST(Defects, an_in_place_operator_runs_twice_when_a_breaker_opens) {
  Stage stage;
  const Operator op = stage.define("bump(inout Tensor x[*])");
  const auto doubles = [](Outcome outcome) {
    return [outcome](CallFrame& call) {
      *call.data<float>(0) *= 2;
      return outcome;
    };
  };
  stage.add({.id = "bump/fast.one", .kind = Kind::default_, .run = doubles(Outcome::failed)});
  stage.add({.id = "bump/plain.one", .kind = Kind::reference, .run = doubles(Outcome::ok)});
  float value = 1;
  const TensorView x(&value, f32, {1});
  for (int i = 0; i < 5; ++i) {
    value = 1;
    EXPECT_EQ(ran_by([&] { EXPECT_EQ(op(x).code(), Code::failed); }), "bump/fast.one");
    EXPECT_EQ(value, 2) << "also at the fifth failure, which opens the breaker";
  }
  value = 1;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(x).ok()); }), "bump/plain.one");
  EXPECT_EQ(value, 2);
}

TEST(Defects, an_open_breaker_ignores_deny_rules) {
  Ward ward;
  ASSERT_TRUE(ward.runtime.policy().set({.deny = {"vendor"}}).ok());
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 20; ++i) (void)ward.run();
  EXPECT_EQ(ward.run(), "copy/plain.one");
  EXPECT_EQ(ward.kernel("copy/middle.one").runs, 0u);
}

TEST(Defects, a_failed_attempt_counts_twice_against_health) {
  Ward ward;
  ward.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  for (uint32_t i = 1; i < 5; ++i) {
    EXPECT_EQ(ward.run(), "copy/fast.one copy/middle.one");
    EXPECT_EQ(ward.runtime.health().report().breakers.at(0).failures_in_a_row, i);
  }
}

}  // namespace
}  // namespace opmux::test
