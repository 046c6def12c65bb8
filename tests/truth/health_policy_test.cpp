#include <opmux/state_page.hpp>

#include <unistd.h>

#include "stage.hpp"
#include "temporary_folder.hpp"

/// The health report and the status file show operators that nothing can run, and policies that
/// were refused.
namespace opmux::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

struct HealthOfPolicyTest : testing::Test {
  HealthOfPolicyTest() : stage(options()) {
    stage.add({.id = "softmax/narrow.x", .kind = Kind::default_, .priority = 200});
  }
  Options options() {
    Options made = bare({{"OPMUX_STATE_PAGE", "1"}});
    made.state.folder = folder.path();
    made.sources.own_thread = false;
    return made;
  }
  HealthReport report() { return stage.runtime.health().report(); }
  RuntimeState page() {
    stage.runtime.tick(now_ += 60s);
    return process_state(::getpid(), folder.path()).value().runtimes.at(0);
  }
  Status load(const std::string& rule) {
    return stage.runtime.policy().load(
        "opmux: 1\nrules:\n  - {name: r, op: softmax, " + rule + "}\n", "p.yaml");
  }
  TemporaryFolder folder;
  Stage stage;

 private:
  std::chrono::nanoseconds now_{1s};
};

TEST_F(HealthOfPolicyTest, truth_health_shows_an_operator_that_nothing_can_run) {
  ASSERT_TRUE(load("require: [softmax/narrow.x]").ok());
  EXPECT_THAT(report().without_candidates, IsEmpty());
  EXPECT_EQ(report().verdict, Health::healthy);
  EXPECT_THAT(page().without_candidates, IsEmpty());
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("narrow", false).ok());
  const HealthReport after = report();
  ASSERT_EQ(after.without_candidates.size(), 1u);
  EXPECT_EQ(after.without_candidates[0].op, "softmax");
  EXPECT_FALSE(after.without_candidates[0].allowed);
  EXPECT_THAT(after.without_candidates[0].reason,
              HasSubstr("softmax/narrow.x cannot run here: backend narrow is switched off"));
  EXPECT_THAT(after.without_candidates[0].reason,
              HasSubstr("policy.outside_require by \"r\" (p.yaml:3)"));
  EXPECT_EQ(after.verdict, Health::degraded);
  EXPECT_THAT(after.reasons.at(0), HasSubstr("operator softmax has no candidate: "));
  EXPECT_THAT(to_json(after), HasSubstr(R"("without_candidates":[{"op":"softmax","when":"",)"));
  const RuntimeState shown = page();
  ASSERT_EQ(shown.without_candidates.size(), 1u);
  EXPECT_EQ(shown.without_candidates[0].reason, after.without_candidates[0].reason);
  EXPECT_EQ(shown.health, "degraded");
  EXPECT_THAT(to_json(process_state(::getpid(), folder.path()).value()),
              HasSubstr(R"("without_candidates":[{"op":"softmax")"));
}

TEST_F(HealthOfPolicyTest, truth_health_shows_the_condition_under_which_nothing_can_run) {
  ASSERT_TRUE(load("when: H > 64, require: [softmax/narrow.x]").ok());
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("narrow", false).ok());
  ASSERT_EQ(report().without_candidates.size(), 1u);
  EXPECT_EQ(report().without_candidates[0].when, "H > 64");
}

TEST_F(HealthOfPolicyTest, truth_an_operator_that_a_policy_allows_to_have_none_is_shown) {
  ASSERT_TRUE(load("deny: [\"*/*\"], allow_none: true").ok());
  ASSERT_EQ(report().without_candidates.size(), 1u);
  EXPECT_TRUE(report().without_candidates[0].allowed);
  EXPECT_EQ(report().verdict, Health::healthy);
  EXPECT_TRUE(page().without_candidates.at(0).allowed);
}

TEST_F(HealthOfPolicyTest, truth_health_shows_refused_policies) {
  EXPECT_EQ(report().refused_policies, 0u);
  ASSERT_FALSE(load("deny: [\"*/*\"]").ok());
  const HealthReport after = report();
  EXPECT_EQ(after.refused_policies, 1u);
  EXPECT_EQ(after.last_refusal.reason(), "policy.no_candidates");
  EXPECT_EQ(after.verdict, Health::healthy);
  EXPECT_THAT(to_json(after),
              HasSubstr(R"("policy":{"refused":1,"code":"policy.no_candidates","last_refusal":")"));
  EXPECT_EQ(page().policies_refused, 1u);
  EXPECT_EQ(page().last_refusal, after.last_refusal.message());
}

TEST(HealthOfDisabled, truth_a_runtime_without_dispatch_has_no_operator_without_candidates) {
  Stage stage(bare({{"OPMUX_DISABLE", "1"}}));
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules: [{op: softmax, deny: [\"*/*\"], allow_none: true}]\n")
                  .ok());
  EXPECT_THAT(stage.runtime.health().report().without_candidates, IsEmpty());
}

}  // namespace
}  // namespace opmux::test
