#include <gmock/gmock.h>

#include "stage.hpp"

/// Hints: an implementation's priority in a range of a dimension. A hint ranks and never refuses.
namespace opmux::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// copy/few.x is good at up to 4 rows, copy/many.x is as good at any number, and copy/some.x is
/// good at 16 to 32 rows.
struct TruthOfHints : testing::Test {
  void SetUp() override {
    stage.add({.id = "copy/few.x",
               .priority = 30,
               .hints = {{.dim = "rows", .most = 4, .priority = 150}}});
    stage.add({.id = "copy/many.x", .priority = 140});
    stage.add({.id = "copy/some.x",
               .priority = 20,
               .hints = {{.dim = "rows", .least = 16, .most = 32, .priority = 160}}});
  }
  /// The implementation of a plain call, which uses cached plans.
  std::string ran(int64_t count) {
    return ran_by([&] { EXPECT_TRUE(op(y(count), x(count)).ok()); });
  }
  TensorView y(int64_t count) { return {rows.out, f32, {count, 8}}; }
  TensorView x(int64_t count) { return {rows.in, f32, {count, 8}}; }
  Explanation explained(int64_t count) { return op.explain(y(count), x(count)); }
  Status load(const std::string& rule) {
    return stage.runtime.policy().load("opmux: 1\nrules:\n  - op: copy\n    " + rule + "\n",
                                       "policy.yaml");
  }

  Stage stage;
  Operator op = stage.define(kCopy);
  Rows rows;
};

const std::pair<int64_t, const char*> kChoices[] = {
    {1, "copy/few.x"},   {4, "copy/few.x"},   {5, "copy/many.x"},  {15, "copy/many.x"},
    {16, "copy/some.x"}, {32, "copy/some.x"}, {33, "copy/many.x"}, {64, "copy/many.x"}};

TEST_F(TruthOfHints, each_side_of_a_bound_runs_what_is_best_there_in_any_order) {
  for (int round = 0; round < 3; ++round) {
    for (const auto& [count, id] : kChoices) EXPECT_EQ(ran(count), id) << count;
    for (auto at = std::rbegin(kChoices); at != std::rend(kChoices); ++at) {
      EXPECT_EQ(ran(at->first), at->second) << at->first;
    }
    for (const auto& [count, id] : kChoices) {
      EXPECT_EQ(ran(count), id) << count;
      EXPECT_EQ(ran(2), "copy/few.x") << "after " << count;
    }
  }
}

TEST_F(TruthOfHints, calls_between_two_bounds_share_a_decision) {
  CallReport report;
  ASSERT_TRUE(op.with(report)(y(6), x(6)).ok());
  EXPECT_FALSE(report.cached);
  ASSERT_TRUE(op.with(report)(y(14), x(14)).ok());
  EXPECT_TRUE(report.cached);
  EXPECT_EQ(report.implementation, "copy/many.x");
  ASSERT_TRUE(op.with(report)(y(16), x(16)).ok());
  EXPECT_FALSE(report.cached);
  EXPECT_EQ(report.implementation, "copy/some.x");
}

TEST_F(TruthOfHints, a_bound_plan_refuses_rows_beyond_a_bound) {
  Plan plan = op.bind(y(4), x(4)).value();
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(y(4), x(4)).ok()); }), "copy/few.x");
  EXPECT_EQ(ran_by([&] { (void)plan(y(5), x(5)); }), "");
}

TEST_F(TruthOfHints, what_a_hint_ranks_low_still_runs_if_nothing_else_may) {
  ASSERT_TRUE(load("deny: [\"copy/many.*\"]").ok());
  EXPECT_EQ(ran(64), "copy/few.x");
  EXPECT_EQ(ran(16), "copy/some.x");
  EXPECT_EQ(ran(2), "copy/few.x");
}

TEST_F(TruthOfHints, policies_rank_above_hints) {
  ASSERT_TRUE(load("prefer: [\"copy/some.*\"]").ok());
  for (const auto& [count, id] : kChoices) EXPECT_EQ(ran(count), "copy/some.x") << count;
  ASSERT_TRUE(load("require: [\"copy/few.*\"]").ok());
  for (const auto& [count, id] : kChoices) EXPECT_EQ(ran(count), "copy/few.x") << count;
}

TEST_F(TruthOfHints, a_boost_adds_to_the_priority_of_the_hint) {
  ASSERT_TRUE(load("boost: [{impl: \"copy/few.*\", add: 15}]").ok());
  EXPECT_EQ(candidate(explained(2), "copy/few.x").score, 165);
  EXPECT_EQ(candidate(explained(20), "copy/few.x").score, 45);
  EXPECT_EQ(ran(2), "copy/few.x");
  EXPECT_EQ(ran(20), "copy/some.x");
}

TEST_F(TruthOfHints, the_first_hint_that_has_the_dimension_counts) {
  stage.add({.id = "copy/two.x",
             .priority = 10,
             .hints = {{.dim = "rows", .least = 8, .most = 8, .priority = 500},
                       {.dim = "H", .most = 8, .priority = 145}}});
  EXPECT_EQ(candidate(explained(8), "copy/two.x").score, 500);
  EXPECT_EQ(candidate(explained(9), "copy/two.x").score, 145);
  EXPECT_EQ(ran(8), "copy/two.x");
  EXPECT_EQ(ran(9), "copy/two.x");
  EXPECT_EQ(ran(2), "copy/few.x");
}

TEST_F(TruthOfHints, equal_priorities_are_ordered_by_id_wherever_they_come_from) {
  stage.add(
      {.id = "copy/a.x", .priority = 5, .hints = {{.dim = "rows", .least = 40, .priority = 140}}});
  EXPECT_EQ(ran(33), "copy/many.x");
  EXPECT_EQ(ran(40), "copy/a.x");
}

TEST_F(TruthOfHints, explain_shows_the_hint_apart_from_priority_and_score) {
  const Candidate few = candidate(explained(2), "copy/few.x");
  EXPECT_EQ(few.verdict, "chosen");
  EXPECT_EQ(few.priority, 30);
  EXPECT_EQ(few.score, 150);
  ASSERT_TRUE(few.hint);
  EXPECT_EQ(few.hint->range(), "rows <= 4");
  EXPECT_EQ(few.hint->priority, 150);
  EXPECT_EQ(few.reason, "priority 30, hint 150 for rows <= 4, first of 3 accepted");

  const Candidate elsewhere = candidate(explained(5), "copy/few.x");
  EXPECT_FALSE(elsewhere.hint);
  EXPECT_EQ(elsewhere.score, 30);
  EXPECT_EQ(elsewhere.reason, "priority 30");
  EXPECT_THAT(explained(5).depends_on, testing::Contains("rows"));

  EXPECT_THAT(to_json(explained(20)),
              HasSubstr(R"("hint":{"dim":"rows","least":16,"most":32,"priority":160})"));
  EXPECT_THAT(to_json(explained(5)), HasSubstr(R"("hint":null)"));
  ASSERT_TRUE(load("deny: [\"copy/few.*\"]").ok());
  EXPECT_TRUE(candidate(explained(2), "copy/few.x").hint) << "also of a refused candidate";
}

TEST_F(TruthOfHints, lists_have_all_hints) {
  for (const OperatorInfo& info : stage.runtime.list()) {
    if (info.name != "copy") continue;
    ASSERT_EQ(info.implementations.size(), 3u);
    ASSERT_EQ(info.implementations[0].hints.size(), 1u);
    EXPECT_EQ(info.implementations[0].hints[0].range(), "rows <= 4");
    EXPECT_EQ(info.implementations[1].hints.size(), 0u);
  }
  EXPECT_THAT(to_json(stage.runtime.list()),
              HasSubstr(R"("hints":[{"dim":"rows","least":0,"most":4,"priority":150}])"));
}

TEST_F(TruthOfHints, a_selector_sees_them) {
  std::string seen;
  Selector selector;
  selector.pick = [&](const Selection& asked) -> std::optional<size_t> {
    for (const Candidate& each : asked.accepted) {
      if (each.hint) seen += each.id + ": " + each.hint->range() + " ";
    }
    return std::nullopt;
  };
  ASSERT_TRUE(stage.runtime.set_selector(selector).ok());
  EXPECT_EQ(ran(2), "copy/few.x");
  EXPECT_EQ(seen, "copy/few.x: rows <= 4 ");
}

TEST_F(TruthOfHints, a_lockfile_has_their_bounds) {
  ASSERT_EQ(ran(2), "copy/few.x");
  ASSERT_EQ(ran(8), "copy/many.x");
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 2u);
  EXPECT_TRUE(stage.runtime.lockfile().check(lock).ok());
  EXPECT_THAT(lock.choices[0].when + lock.choices[1].when, HasSubstr("rows"));
}

TEST(Truth, a_hint_about_a_dimension_that_the_call_lacks_does_not_apply) {
  Stage stage;
  const Operator op =
      stage.define("scaled(out Tensor y[..., H], Tensor x[..., H], Tensor? scale[G])");
  stage.add({.id = "scaled/a.x", .priority = 10, .hints = {{.dim = "G", .priority = 200}}});
  stage.add({.id = "scaled/b.x", .priority = 100});
  const Rows t;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ran_by([&] { ASSERT_TRUE(op(t.y, t.x, none).ok()); }), "scaled/b.x");
    EXPECT_EQ(ran_by([&] { ASSERT_TRUE(op(t.y, t.x, t.w).ok()); }), "scaled/a.x");
  }
}

TEST(Truth, a_hint_that_makes_no_sense_is_refused) {
  Stage stage;
  stage.define(kCopy);
  const auto refusal = [&](const Hint& hint) {
    const auto added = stage.runtime.implement(
        {.id = "copy/a.x", .vendor = "acme", .hints = {hint}, .run = [](CallFrame&) {
           return Outcome::ok;
         }});
    return added
               ? "accepted"
               : std::string(added.error().reason()) + ": " + std::string(added.error().message());
  };
  EXPECT_THAT(refusal({.dim = "row", .most = 4, .priority = 150}),
              AllOf(HasSubstr("registry.hint: "),
                    HasSubstr("a hint names the dimension 'row', which copy does not have; did you "
                              "mean 'rows'?")));
  for (const Hint& wrong :
       {Hint{"rows", 5, 4, 100}, Hint{"rows", -1, 4, 100}, Hint{"rows", 0, -4, 100},
        Hint{"rows", 0, 4, 1001}, Hint{"rows", 0, 4, -1}}) {
    EXPECT_THAT(refusal(wrong), HasSubstr("registry.hint: ")) << wrong.range();
  }
  EXPECT_EQ(refusal({.dim = "H", .least = 5, .most = 5, .priority = 1000}), "accepted");
}

TEST(Truth, the_range_of_a_hint_reads_as_a_condition) {
  EXPECT_EQ((Hint{"rows", 0, 4, 1}).range(), "rows <= 4");
  EXPECT_EQ((Hint{"rows", 5, 1024, 1}).range(), "5 <= rows <= 1024");
  EXPECT_EQ((Hint{"S", 16, 0, 1}).range(), "S >= 16");
  EXPECT_EQ((Hint{"H", 64, 64, 1}).range(), "H == 64");
}

}  // namespace
}  // namespace opmux::test
