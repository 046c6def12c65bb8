#include "dispatch/compiled_operator.hpp"
#include "dispatch/engine.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Calls one operator under policies with different contents.
struct ScopeLifetime : testing::Test {
  static Options with_sink(std::vector<Event>& events) {
    Options options = bare();
    options.sink = [&events](const Event& event) { events.push_back(event); };
    return options;
  }
  static Policy denying(int number) {
    return {.deny = {"impl:copy/absent.number" + std::to_string(number)}};
  }
  void call(int number) {
    const PolicyScope scope(stage.runtime, denying(number));
    ASSERT_TRUE(scope.status().ok());
    ASSERT_EQ(ran_by([&] { ASSERT_TRUE(op(rows.y, rows.x).ok()); }), "copy/a.x");
  }
  /// Decided classes of the operator, under all scopes.
  uint32_t classes() const {
    return stage.runtime.core().engine().find("copy")->current.load()->classes();
  }
  size_t warnings() const {
    return static_cast<size_t>(
        std::ranges::count(events, std::string("dispatch.many_scopes"), &Event::code));
  }

  std::vector<Event> events;
  mutable Stage stage{with_sink(events)};
  const Operator op = define_three_copies(stage);
  const Rows rows{2, 16};
};

TEST_F(ScopeLifetime, decisions_under_scopes_that_are_no_longer_used_are_freed) {
  for (int i = 0; i < 3000; ++i) {
    call(i);
    ASSERT_LE(classes(), dispatch::CompiledOperator::kMostScopes + 1);
  }
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
  EXPECT_EQ(warnings(), 1u);
}

TEST_F(ScopeLifetime, a_scope_that_is_in_use_continues_after_the_others_were_freed) {
  Policy only_b;
  only_b.deny = {"impl:copy/a.x"};
  const Scope kept = Scope::make(stage.runtime, only_b).value();
  const auto call_in_it = [&] {
    const EnteredScope entered(kept);
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
  };
  for (int i = 0; i < 1200; ++i) {
    call(i);
    ASSERT_EQ(call_in_it(), "copy/b.x");
  }
}

TEST_F(ScopeLifetime, a_plan_that_was_bound_under_a_scope_stays_current) {
  Policy only_b;
  only_b.deny = {"impl:copy/a.x"};
  const Scope kept = Scope::make(stage.runtime, only_b).value();
  Plan plan = [&] {
    const EnteredScope entered(kept);
    return op.bind(rows.y, rows.x).value();
  }();
  for (int i = 0; i < 1200; ++i) call(i);
  EXPECT_EQ(plan.state(), Plan::State::current);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(rows.y, rows.x).ok()); }), "copy/b.x");
}

TEST_F(ScopeLifetime, as_many_scopes_as_can_be_alive_are_decided_once) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < static_cast<int>(policy::ScopeTable::kMostAlive); ++i) call(i);
  }
  EXPECT_EQ(classes(), policy::ScopeTable::kMostAlive);
  EXPECT_EQ(warnings(), 0u);
}

}  // namespace
}  // namespace opmux::test
