#include <stdexcept>

#include "policy/policy_store.hpp"

#include "runtime/core.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

constexpr const char* kPreferB = "opmux: 1\nrules:\n  - {name: b, op: copy, prefer: [copy/b.x]}\n";
constexpr const char* kPreferC = "opmux: 1\nrules:\n  - {name: c, op: copy, prefer: [copy/c.x]}\n";
constexpr const char* kBroken = "opmux: 1\nrules:\n  - {name: c, op: copy, perfer: [copy/c.x]}\n";

/// copy with three implementations; a.x is chosen unless a policy says otherwise.
struct PolicyTextTest : testing::Test {
  explicit PolicyTextTest(Options options = bare()) : stage(std::move(options)) {
    stage.define(kCopy);
    stage.add({.id = "copy/a.x", .kind = Kind::default_, .priority = 200});
    stage.add({.id = "copy/b.x", .kind = Kind::default_, .priority = 100});
    stage.add({.id = "copy/c.x", .kind = Kind::default_, .priority = 50});
  }
  std::string runs() {
    const Operator copy = stage.runtime.op("copy").value();
    return ran_by([&] { EXPECT_TRUE(copy(t.y, t.x).ok()); });
  }
  Status load(const std::string& text, const std::string& name = "p.yaml") {
    return stage.runtime.policy().load(text, name);
  }
  Rows t;
  Stage stage;
};

TEST_F(PolicyTextTest, puts_a_text_in_force) {
  EXPECT_EQ(runs(), "copy/a.x");
  ASSERT_TRUE(load(kPreferB).ok());
  EXPECT_EQ(runs(), "copy/b.x");
  const PolicyState state = stage.runtime.policy().state();
  EXPECT_EQ(state.name, "p.yaml");
  EXPECT_EQ(state.origin, "load_policy");
  EXPECT_EQ(state.version, 1u);
  EXPECT_EQ(state.generation, stage.runtime.generation());
  EXPECT_EQ(state.rules, 1u);
  EXPECT_EQ(state.digest.size(), 64u);
  ASSERT_TRUE(load(kPreferC).ok());
  EXPECT_EQ(runs(), "copy/c.x");
  EXPECT_EQ(stage.runtime.policy().state().version, 2u);
}

TEST_F(PolicyTextTest, a_refused_text_changes_nothing_but_a_counter) {
  ASSERT_TRUE(load(kPreferB).ok());
  const uint64_t generation = stage.runtime.generation();
  const Status refused = load(kBroken, "broken.yaml");
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("broken.yaml:3:"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("prefer"));
  EXPECT_EQ(stage.runtime.generation(), generation);
  EXPECT_EQ(runs(), "copy/b.x");
  const PolicyState state = stage.runtime.policy().state();
  EXPECT_EQ(state.name, "p.yaml");
  EXPECT_EQ(state.version, 1u);
  EXPECT_EQ(state.loaded, 1u);
  EXPECT_EQ(state.refused, 1u);
  EXPECT_EQ(state.last_refusal.message(), refused.message());
}

TEST_F(PolicyTextTest, a_text_that_leaves_no_candidate_is_refused_by_the_dry_run) {
  const Status refused = load("opmux: 1\nrules:\n  - {op: copy, deny: ['*/*']}\n");
  EXPECT_EQ(refused.reason(), "policy.no_candidates");
  EXPECT_EQ(runs(), "copy/a.x");
}

TEST_F(PolicyTextTest, rules_for_other_machines_are_kept_counted_and_shown) {
  ASSERT_TRUE(load("opmux: 1\nrules:\n"
                   "  - {name: here, op: copy, prefer: [copy/b.x, copy/zeta.*]}\n"
                   "  - {name: elsewhere, op: copy, boost: [{impl: copy/zeta.*, add: 5}]}\n"
                   "  - {op: copy, deny: [copy/eta.*]}\n")
                  .ok());
  EXPECT_EQ(runs(), "copy/b.x");
  const PolicyState state = stage.runtime.policy().state();
  EXPECT_EQ(state.rules, 3u);
  EXPECT_EQ(state.unmatched, 2u);
  EXPECT_THAT(state.unmatched_rules,
              testing::ElementsAre("\"elsewhere\" (p.yaml:4)", "rule for copy (p.yaml:5)"));
  EXPECT_EQ(setting(stage.runtime, "file.unmatched"),
            "2 <- \"elsewhere\" (p.yaml:4), rule for copy (p.yaml:5)");
  stage.add({.id = "copy/zeta.x", .kind = Kind::default_, .priority = 1});
  EXPECT_EQ(stage.runtime.policy().state().unmatched, 1u);
}

TEST_F(PolicyTextTest, explain_names_the_latest_place_of_a_rule_that_does_the_same) {
  const Operator copy = stage.runtime.op("copy").value();
  const auto by = [&] {
    for (const Candidate& one : copy.explain(t.y, t.x).candidates) {
      if (one.id == "copy/b.x") return one.reason;
    }
    return std::string();
  };
  ASSERT_TRUE(load(kPreferB).ok());
  EXPECT_THAT(by(), HasSubstr("\"b\" (p.yaml:3)"));
  EXPECT_EQ(runs(), "copy/b.x");
  ASSERT_TRUE(load("opmux: 1\n# a remark\nrules:\n"
                   "  - {name: renamed, op: copy, prefer: [copy/b.x], owner: me}\n")
                  .ok());
  EXPECT_THAT(by(), HasSubstr("\"renamed\" (p.yaml:4, me)"));
  EXPECT_EQ(runs(), "copy/b.x");
  const PolicyScope scope(stage.runtime, {.deny = {"copy/a.x"}});
  EXPECT_THAT(by(), HasSubstr("\"renamed\" (p.yaml:4, me)"));
}

TEST_F(PolicyTextTest, rolls_back_to_the_previous_text_and_forward_again) {
  EXPECT_EQ(stage.runtime.policy().rollback().reason(), "policy.no_previous");
  ASSERT_TRUE(load(kPreferB).ok());
  EXPECT_EQ(stage.runtime.policy().rollback().reason(), "policy.no_previous");
  ASSERT_TRUE(load(kPreferC).ok());
  ASSERT_TRUE(stage.runtime.policy().rollback().ok());
  EXPECT_EQ(runs(), "copy/b.x");
  EXPECT_EQ(stage.runtime.policy().state().version, 1u);
  EXPECT_EQ(stage.runtime.policy().state().previous_version, 2u);
  EXPECT_EQ(stage.runtime.policy().state().origin, "rollback");
  ASSERT_TRUE(stage.runtime.policy().rollback().ok());
  EXPECT_EQ(runs(), "copy/c.x");
}

TEST_F(PolicyTextTest, validators_may_veto) {
  std::vector<size_t> rules;
  stage.runtime.policy().add_validator([&](const Policy& next) {
    rules.push_back(next.rules.size());
    if (next.rules[0].name != "c") return Status();
    return Status(Code::invalid_argument, "fleet.no_c", "c is not approved");
  });
  EXPECT_TRUE(load(kPreferB).ok());
  EXPECT_EQ(load(kPreferC).reason(), "fleet.no_c");
  EXPECT_EQ(runs(), "copy/b.x");
  EXPECT_THAT(rules, testing::ElementsAre(1, 1));
  stage.runtime.policy().add_validator(
      [](const Policy&) -> Status { throw std::runtime_error("oh"); });
  EXPECT_EQ(load(kPreferB).reason(), "policy.validator");
}

TEST_F(PolicyTextTest, listeners_are_notified_of_success_and_of_every_kind_of_failure) {
  std::vector<std::string> heard;
  stage.runtime.policy().on_change([&](const PolicyChange& change) {
    heard.push_back(change.name + " " + std::to_string(change.version) + " " +
                    std::string(change.status.reason()));
  });
  stage.runtime.policy().add_validator([](const Policy& next) {
    return next.rules.size() < 2 ? Status() : Status(Code::invalid_argument, "two", "two rules");
  });
  ASSERT_TRUE(load(kPreferB, "1").ok());
  (void)load("opmux: [", "2");
  (void)load(kBroken, "3");
  (void)load("opmux: 1\nrules:\n  - {op: copy, deny: ['*/*']}\n", "4");
  (void)load("opmux: 1\nrules:\n  - {op: copy, strict: true}\n  - {op: copy, strict: true}\n", "5");
  ASSERT_TRUE(load(kPreferC, "6").ok());
  ASSERT_TRUE(stage.runtime.policy().rollback().ok());
  EXPECT_THAT(heard, testing::ElementsAre("1 1 ", "2 1 policy.syntax", "3 1 policy.rule",
                                          "4 1 policy.no_candidates", "5 1 two", "6 2 ", "1 1 "));
}

TEST_F(PolicyTextTest, code_overrides_the_text_and_the_text_overrides_the_environment) {
  ASSERT_TRUE(load(kPreferB).ok());
  Policy code;
  code.prefer = {"copy/c.x"};
  ASSERT_TRUE(stage.runtime.policy().set(code).ok());
  EXPECT_EQ(runs(), "copy/c.x");
  ASSERT_TRUE(stage.runtime.policy().reset().ok());
  EXPECT_EQ(runs(), "copy/b.x");
}

struct PolicyAboveEnvironmentTest : PolicyTextTest {
  PolicyAboveEnvironmentTest() : PolicyTextTest(bare({{"OPMUX_PREFER", "copy/c.x"}})) {}
};
TEST_F(PolicyAboveEnvironmentTest, the_text_replaces_what_the_environment_prefers) {
  EXPECT_EQ(runs(), "copy/c.x");
  ASSERT_TRUE(load(kPreferB).ok());
  EXPECT_EQ(runs(), "copy/b.x");
}

/// A date that the test sets.
struct SetDay {
  std::chrono::sys_days day{std::chrono::year(2027) / 2 / 1};
};
struct ExpiryTest : PolicyTextTest {
  ExpiryTest() : PolicyTextTest(options(*this)) {}
  static Options options(ExpiryTest& own) {
    Options made = bare();
    made.sources.own_thread = false;
    made.sources.utc = [&own] { return std::chrono::sys_seconds(own.today.day); };
    return made;
  }
  SetDay today;
};
TEST_F(ExpiryTest, a_preference_lapses_when_its_day_is_over_and_a_denial_stays) {
  ASSERT_TRUE(load("opmux: 1\nrules:\n"
                   "  - {op: copy, prefer: [copy/c.x], expires: 2027-02-01}\n"
                   "  - {op: copy, deny: [copy/a.x], expires: 2027-02-01}\n")
                  .ok());
  stage.runtime.tick(std::chrono::seconds(1));
  EXPECT_EQ(runs(), "copy/c.x");
  today.day += std::chrono::days(1);
  stage.runtime.tick(std::chrono::seconds(2));
  EXPECT_EQ(runs(), "copy/c.x");  // The date is checked once per minute.
  stage.runtime.tick(std::chrono::seconds(62));
  EXPECT_EQ(runs(), "copy/b.x");
  EXPECT_EQ(stage.runtime.policy().state().expired, 2u);
  EXPECT_EQ(stage.runtime.policy().state().lapsed, 1u);
}

}  // namespace
}  // namespace opmux::test
