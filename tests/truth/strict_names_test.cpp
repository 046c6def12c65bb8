#include "stage.hpp"

/// Names that match nothing under `opmux check --strict`.
namespace opmux::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct StrictNamesTest : testing::Test {
  StrictNamesTest() {
    stage.add({.id = "softmax/simd.avx2", .kind = Kind::default_});
    stage.add({.id = "softmax/acme.fast", .kind = Kind::vendor, .vendor = "acme"});
  }
  std::string checked(const std::string& rule, const PolicyCheckOptions& options) {
    const Status status =
        stage.runtime.policy()
            .check("opmux: 1\nrules:\n  - {op: softmax, " + rule + "}\n", "p.yaml", options)
            .error();
    return status.ok() ? "ok" : status.to_string();
  }
  std::string strictly(const std::string& rule) { return checked(rule, {.strict_names = true}); }
  Stage stage;
};

TEST_F(StrictNamesTest, truth_a_deny_that_matches_nothing_fails_under_strict_with_a_suggestion) {
  EXPECT_THAT(strictly("deny: [softmax/smid.*]"),
              AllOf(HasSubstr("policy.unmatched"), HasSubstr("p.yaml:3:"),
                    HasSubstr("deny: no registered implementation matches 'softmax/smid.*', which "
                              "a strict check requires; did you mean 'softmax/simd.*'?")));
  EXPECT_THAT(strictly("deny: [\"*/smid.*\"]"), HasSubstr("did you mean '*/simd.*'?"));
  EXPECT_THAT(strictly("deny: [\"vendor:acem\"]"), HasSubstr("did you mean 'vendor:acme'?"));
  EXPECT_THAT(strictly("deny: [\"impl:softmax/acme.fats\"]"),
              HasSubstr("did you mean 'impl:softmax/acme.fast'?"));
  EXPECT_EQ(strictly("deny: [softmax/simd.*]"), "ok");
}

TEST_F(StrictNamesTest, truth_a_prefer_that_matches_nothing_fails_under_strict_with_a_suggestion) {
  EXPECT_THAT(strictly("prefer: [softmax/simd.avx]"),
              HasSubstr("did you mean 'softmax/simd.avx2'?"));
  EXPECT_THAT(strictly("prefer: [softmax/zeta.*]"),
              HasSubstr("`opmux list` shows the registered ones"));
  const Status defaults = stage.runtime.policy()
                              .check("opmux: 1\ndefaults: {prefer: [\"vendor:acem\"]}\n", "p.yaml",
                                     {.strict_names = true})
                              .error();
  EXPECT_THAT(defaults.to_string(), HasSubstr("did you mean 'vendor:acme'?"));
}

TEST_F(StrictNamesTest, truth_without_strict_a_deny_may_name_what_other_hosts_have) {
  EXPECT_EQ(checked("deny: [softmax/smid.*]", {}), "ok");
  EXPECT_EQ(checked("deny: [softmax/smid.*]", {.machine = stage.runtime.list()}), "ok");
  EXPECT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nnames: strict\nrules: [{op: softmax, deny: [softmax/smid.*]}]\n")
                  .ok());
  const PolicyCheck warned =
      stage.runtime.policy()
          .check("opmux: 1\nrules: [{op: softmax, deny: [softmax/smid.*]}]\n", "p.yaml")
          .value();
  ASSERT_EQ(warned.findings.size(), 1u);
  EXPECT_THAT(warned.findings[0].text, HasSubstr("did you mean 'softmax/simd.*'?"));
}

TEST_F(StrictNamesTest, truth_strict_names_set_in_code_refuses_what_matches_nothing) {
  Policy policy{.strict_names = true};
  policy.rules = {{.name = "fast", .op = "softmax", .prefer = {"softmax/simd.avx"}}};
  const Status rule = stage.runtime.policy().set(policy);
  EXPECT_EQ(rule.reason(), "policy.unmatched");
  EXPECT_THAT(rule.to_string(),
              HasSubstr("rule \"fast\": prefer: no registered implementation matches "
                        "'softmax/simd.avx', which strict_names requires; did you mean "
                        "'softmax/simd.avx2'?"));
  EXPECT_TRUE(stage.runtime.policy().get().rules.empty()) << "nothing was set";
  EXPECT_EQ(PolicyScope(stage.runtime, policy).status().reason(), "policy.unmatched");
  EXPECT_EQ(Runtime::create({.backends = false, .policy = policy}).error().reason(),
            "policy.unmatched");

  policy.strict_names = false;
  EXPECT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(stage.runtime.policy()
                .set({.per_op = {{"softmax", {"vendor:acem"}}}, .strict_names = true})
                .reason(),
            "policy.unmatched");
  EXPECT_EQ(stage.runtime.policy().set({.prefer = {"vendor:acem"}, .strict_names = true}).reason(),
            "policy.unmatched");
  EXPECT_TRUE(stage.runtime.policy()
                  .set({.prefer = {"vendor:acme"}, .deny = {"vendor:acem"}, .strict_names = true})
                  .ok())
      << "deny may name what other hosts have";
}

}  // namespace
}  // namespace opmux::test
