#include "stage.hpp"
#include "temporary_folder.hpp"

/// A policy is judged by what this machine can run.
namespace opmux::test {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNoFeature = "no_such_feature";
constexpr const char* kRequires =
    "opmux: 1\nrules:\n  - {name: only-wide, op: softmax, require: [softmax/wide.x]}\n";

std::string rules(const std::string& lines) { return "opmux: 1\nrules:\n" + lines; }

/// softmax: wide.x has the highest priority and needs a feature that no processor has; then
/// narrow.x, off.x, whose backend is switched off, and the reference.
struct CanRunTest : testing::Test {
  CanRunTest() : stage(options()) {
    stage.add({.id = "softmax/wide.x",
               .kind = Kind::default_,
               .priority = 300,
               .caps = Caps{}.cpu_features(kNoFeature)});
    stage.add({.id = "softmax/off.x", .kind = Kind::default_, .priority = 250});
    stage.add({.id = "softmax/narrow.x", .kind = Kind::default_, .priority = 200});
    EXPECT_TRUE(stage.runtime.plugins().enable_backend("off", false).ok());
  }
  Options options() {
    write_file(config(), "opmux: 1\n");
    Options made = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
    made.sources.config = config();
    made.sources.own_thread = false;
    return made;
  }
  std::string config() const { return folder.at("policy.yaml"); }
  PolicyControl policy() { return stage.runtime.policy(); }
  Status check(const std::string& text) { return policy().check(text, "p.yaml").error(); }
  Status compare(const std::string& text) {
    return policy().compare("opmux: 1\n", "old.yaml", text, "p.yaml").error();
  }
  /// Replaces the policy file and runs the maintenance that reads it.
  void reload(const std::string& text) {
    write_file(config(), text);
    for (int i = 0; i < 4; ++i) stage.runtime.tick(milliseconds(now_ += 100));
  }
  std::string runs() {
    const Operator softmax = stage.runtime.op("softmax").value();
    return ran_by([&] { EXPECT_TRUE(softmax(t.y, t.x).ok()); });
  }
  Explanation explanation() { return stage.runtime.op("softmax").value().explain(t.y, t.x); }

  TemporaryFolder folder;
  Rows t;
  Stage stage;

 private:
  int now_ = 1000;
};

TEST_F(CanRunTest, truth_a_policy_that_requires_what_cannot_run_here_is_refused_everywhere) {
  const Status checked = check(kRequires);
  EXPECT_EQ(checked.reason(), "policy.no_candidates");
  const std::string why(checked.message());
  EXPECT_THAT(why, HasSubstr("would leave softmax without an implementation that can run here"));
  EXPECT_THAT(why, HasSubstr("softmax/wide.x cannot run here: this CPU lacks no_such_feature;"));
  EXPECT_THAT(why, HasSubstr("policy.outside_require by \"only-wide\" (p.yaml:3)"));
  EXPECT_EQ(policy().load(kRequires, "p.yaml").to_string(), checked.to_string());
  EXPECT_EQ(compare(kRequires).to_string(), checked.to_string());
  Policy code;
  code.require = {"softmax/wide.x"};
  EXPECT_EQ(policy().set(code).reason(), "policy.no_candidates");
  EXPECT_EQ(runs(), "softmax/narrow.x");
}

TEST_F(CanRunTest, truth_a_reload_that_requires_what_cannot_run_here_leaves_the_last_good_policy) {
  reload(rules("  - {op: softmax, prefer: [softmax/narrow.x]}\n"));
  EXPECT_EQ(policy().state().version, 2u);
  reload(kRequires);
  EXPECT_EQ(policy().state().refused, 1u);
  EXPECT_EQ(policy().state().last_refusal.reason(), "policy.no_candidates");
  EXPECT_EQ(policy().state().version, 2u);
  EXPECT_EQ(runs(), "softmax/narrow.x");
}

TEST_F(CanRunTest, truth_a_backend_that_is_switched_off_cannot_run) {
  const std::string text = rules("  - {name: r, op: softmax, order: [softmax/off.x]}\n");
  EXPECT_THAT(std::string(check(text).message()),
              HasSubstr("softmax/off.x cannot run here: backend off is switched off"));
  EXPECT_EQ(policy().load(text, "p.yaml").reason(), "policy.no_candidates");
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("off", true).ok());
  EXPECT_TRUE(check(text).ok());
  ASSERT_TRUE(policy().load(text, "p.yaml").ok());
  EXPECT_EQ(runs(), "softmax/off.x");
}

TEST_F(CanRunTest, truth_rules_with_one_condition_are_judged_together) {
  const std::string text = rules(
      "  - {name: a, op: softmax, when: H > 64, deny: [reference]}\n"
      "  - {name: b, op: softmax, when: H > 64, deny: [softmax/narrow.x]}\n");
  const Status refused = check(text);
  EXPECT_EQ(refused.reason(), "policy.no_candidates");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("that can run here where H > 64: "));
  EXPECT_EQ(policy().load(text, "p.yaml").to_string(), refused.to_string());
  // Calls for which different conditions are true are not combined.
  EXPECT_TRUE(check(rules("  - {op: softmax, when: H > 64, deny: [reference]}\n"
                          "  - {op: softmax, when: H <= 64, deny: [softmax/narrow.x]}\n"))
                  .ok());
}

TEST_F(CanRunTest, truth_a_condition_that_the_processor_rules_out_leaves_a_policy_valid) {
  const std::string text = rules(
      "  - {op: softmax, when: cpu(\"sme2\") && cpu(\"amx_tile\"), require: [softmax/wide.x]}\n");
  EXPECT_TRUE(check(text).ok());
  ASSERT_TRUE(policy().load(text, "p.yaml").ok());
  EXPECT_EQ(runs(), "softmax/narrow.x");
  EXPECT_EQ(check(rules("  - {op: softmax, when: \"!cpu(\\\"sme2\\\") || H > 64\", "
                        "require: [softmax/wide.x]}\n"))
                .reason(),
            "policy.no_candidates");
}

TEST_F(CanRunTest, truth_a_rule_with_allow_none_permits_what_cannot_run) {
  const std::string text =
      rules("  - {op: softmax, require: [softmax/wide.x], allow_none: true}\n");
  EXPECT_TRUE(check(text).ok());
  ASSERT_TRUE(policy().load(text, "p.yaml").ok());
  EXPECT_EQ(explanation().chosen, "");
  EXPECT_EQ(candidate(explanation(), "softmax/wide.x").code, "caps.cpu_features");
}

TEST_F(CanRunTest, truth_a_policy_with_allow_none_permits_what_cannot_run) {
  const std::string text = std::string(kRequires) + "defaults: {allow_none: true}\n";
  EXPECT_TRUE(check(text).ok());
  ASSERT_TRUE(policy().load(text, "p.yaml").ok());
  EXPECT_EQ(setting(stage.runtime, "allow_none"), "true <- allow_none (p.yaml)");
  EXPECT_EQ(explanation().chosen, "");
  // The same rules without the word are tried again.
  EXPECT_EQ(policy().load(kRequires, "p.yaml").reason(), "policy.no_candidates");
  ASSERT_TRUE(policy().load("opmux: 1\n", "p.yaml").ok());
  Policy code{.require = {"softmax/wide.x"}};
  EXPECT_EQ(policy().set(code).reason(), "policy.no_candidates");
  code.allow_none = true;
  ASSERT_TRUE(policy().set(code).ok());
  EXPECT_EQ(explanation().chosen, "");
}

TEST_F(CanRunTest, truth_an_operator_of_which_nothing_can_run_anyway_is_not_held_against_a_policy) {
  stage.define(kCopy);
  stage.add({.id = "copy/wide.x", .kind = Kind::default_, .caps = Caps{}.cpu_features(kNoFeature)});
  EXPECT_TRUE(check(rules("  - {op: copy, require: [copy/wide.x]}\n")).ok());
  EXPECT_TRUE(check(rules("  - {op: \"*\", prefer: [vendor]}\n")).ok());
  EXPECT_EQ(check(rules("  - {op: copy, deny: [\"*/*\"]}\n")).reason(), "policy.no_candidates");
}

TEST_F(CanRunTest, truth_check_and_diff_and_explain_name_one_choice) {
  const std::string text = rules(
      "  - {name: w, op: softmax, when: H > 64, deny: [softmax/narrow.x]}\n"
      "  - {name: p, op: softmax, prefer: [softmax/wide.x, softmax/off.x, reference]}\n");
  const PolicyCheck checked = policy().check(text, "p.yaml").value();
  ASSERT_EQ(checked.changes.size(), 1u);
  EXPECT_EQ(checked.changes[0].before, "softmax/narrow.x");
  EXPECT_EQ(checked.changes[0].after, "softmax/reference.scalar");
  const auto changes = policy().compare("opmux: 1\n", "old.yaml", text, "p.yaml").value();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].from, "softmax/narrow.x");
  EXPECT_EQ(changes[0].to, "softmax/reference.scalar");
  EXPECT_EQ(explanation().chosen, "softmax/narrow.x");
  ASSERT_TRUE(policy().load(text, "p.yaml").ok());
  EXPECT_EQ(explanation().chosen, "softmax/reference.scalar");
}

TEST_F(CanRunTest, truth_check_reports_a_condition_whose_choice_becomes_the_general_one) {
  ASSERT_TRUE(policy()
                  .load(rules("  - {op: softmax, when: H > 64, require: [reference]}\n"), "p.yaml")
                  .ok());
  const PolicyCheck checked =
      policy().check(rules("  - {op: softmax, strict: true}\n"), "q.yaml").value();
  ASSERT_EQ(checked.changes.size(), 1u);
  EXPECT_EQ(checked.changes[0].when, "H > 64");
  EXPECT_EQ(checked.changes[0].after, "softmax/narrow.x");
}

TEST_F(CanRunTest, truth_check_asks_the_validators_as_loading_does) {
  policy().add_validator([](const Policy& next) -> Status {
    if (next.rules.empty()) return {};
    return {Code::invalid_argument, "test.no_rules", "rules are not wanted here"};
  });
  const std::string text = rules("  - {op: softmax, strict: true}\n");
  EXPECT_EQ(check(text).reason(), "test.no_rules");
  EXPECT_EQ(compare(text).reason(), "test.no_rules");
  EXPECT_EQ(policy().load(text, "p.yaml").reason(), "test.no_rules");
}

TEST_F(CanRunTest, truth_a_described_machine_is_asked_what_it_can_run) {
  const PolicyCheckOptions machine{.machine = stage.runtime.list()};
  const Runtime elsewhere = Runtime::create(bare()).value();
  const Status refused = elsewhere.policy().check(kRequires, "p.yaml", machine).error();
  EXPECT_EQ(refused.reason(), "policy.no_candidates");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("softmax/wide.x cannot run here: this CPU lacks no_such_feature"));
}

}  // namespace
}  // namespace opmux::test
