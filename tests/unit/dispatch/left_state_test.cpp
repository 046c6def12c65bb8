#include <cfenv>
#include <functional>

#include "base/system/thread_state.hpp"
#include "dispatch/call/attempt.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

TEST(StatesToCompare, are_all_in_the_first_second_fourth_and_eighth_run) {
  const registry::ImplementationRecord implementation;
  std::string all;
  for (int run = 1; run <= 9; ++run) {
    const uint32_t states = dispatch::states_to_compare(implementation, false);
    if (states == base::kAllStates) all += std::to_string(run) + " ";
    EXPECT_NE(states & base::kFloatingPoint, 0u);
  }
  EXPECT_EQ(all, "1 2 4 8 ");
}

TEST(StatesToCompare, are_all_after_a_failure_and_after_a_change) {
  const registry::ImplementationRecord implementation;
  implementation.compared = 2;
  EXPECT_EQ(dispatch::states_to_compare(implementation, true), base::kAllStates);
  implementation.compared = 2;
  EXPECT_EQ(dispatch::states_to_compare(implementation, false), base::kFloatingPoint);
  implementation.compared = 2;
  implementation.left = base::kFloatingPoint;
  EXPECT_EQ(dispatch::states_to_compare(implementation, false), base::kAllStates);
}

/// One candidate that calls `leave` in each run.
struct Leaving : Stage {
  explicit Leaving(std::function<void()> leave, decltype(Implementation::verify) verify = {})
      : Stage(bare()), op(define(kCopy)) {
    add({.id = "copy/fast.one",
         .kind = Kind::default_,
         .run = [leave = std::move(leave)](CallFrame&) { return leave(), Outcome::ok; },
         .verify = std::move(verify)});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  Operator op;
  const Rows rows;
};

TEST(LeftState, a_mode_that_only_later_runs_leave_is_restored_on_the_slow_path) {
  int runs = 0;
  Leaving stage([&] {
    if (++runs == 3) std::fesetround(FE_UPWARD);
  });
  for (int call = 0; call < 5; ++call) {
    CallReport report;  // takes the slow path
    ASSERT_TRUE(stage.op.with(report)(stage.rows.y, stage.rows.x).ok());
    EXPECT_EQ(report.implementation, "copy/fast.one");
    EXPECT_EQ(report.reason.empty(), call != 2);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST) << "after call " << call;
  }
}

TEST(LeftState, is_restored_by_the_shadow_check_too) {
  Leaving stage([] { std::fesetround(FE_UPWARD); });
  Policy policy;
  policy.shadow.every = 1;
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  for (int call = 0; call < 20; ++call) {
    ASSERT_TRUE(stage.op(stage.rows.y, stage.rows.x).ok());
    EXPECT_EQ(std::fegetround(), FE_TONEAREST) << "after call " << call;
  }
}

TEST(LeftState, of_a_verifier_is_restored) {
  Leaving stage([] {},
                [](const Facts&) {
                  std::fesetround(FE_UPWARD);
                  return std::string();
                });
  ASSERT_TRUE(stage.op(stage.rows.y, stage.rows.x).ok());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

}  // namespace
}  // namespace opmux::test
