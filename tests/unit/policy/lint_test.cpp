#include "policy/rules/lint.hpp"

#include <gtest/gtest.h>

#include "policy/rules/runnable_candidates.hpp"
#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

const registry::RegistrySnapshot& known() {
  static const registry::RegistrySnapshot snapshot = [] {
    registry::RegistrySnapshot one;
    registry::put_operator(one, *norm_operator());
    return one;
  }();
  return snapshot;
}

std::string codes(std::vector<Rule> rules) {
  Policy policy;
  policy.rules = std::move(rules);
  std::string all;
  for (const Finding& finding : lint(policy, known())) {
    all += (all.empty() ? "" : " ") + finding.rule + ":" + finding.code;
  }
  return all;
}

Condition wide(int64_t more = 0) { return Condition::dim("H", Compare::greater, 64 + more); }

TEST(Lint, reports_nothing_if_every_rule_has_an_effect) {
  EXPECT_EQ(codes({{.name = "a", .op = "norm", .when = wide(), .prefer = {"vendor"}},
                   {.name = "b", .op = "norm", .prefer = {"reference"}},
                   {.name = "c", .op = "*", .deny = {"*/absent.*"}, .strict = true}}),
            "c:policy.unmatched");
}

TEST(Lint, finds_a_field_that_another_rule_always_sets_first) {
  EXPECT_EQ(codes({{.name = "a", .op = "*", .prefer = {"vendor"}},
                   {.name = "b", .op = "norm", .prefer = {"reference"}}}),
            "b:policy.shadowed");
  EXPECT_EQ(codes({{.name = "a", .op = "*", .prefer = {"vendor"}},
                   {.name = "b", .op = "norm", .prefer = {"reference"}, .rank = 60}}),
            "");
  EXPECT_EQ(codes({{.name = "a", .op = "norm", .when = wide(), .strict = true},
                   {.name = "b", .op = "norm", .when = wide(), .strict = false},
                   {.name = "c", .op = "norm", .when = wide(1), .strict = false}}),
            "b:policy.shadowed");
  EXPECT_EQ(codes({{.name = "a", .op = "*", .transforms = {"contiguous"}},
                   {.name = "b", .op = "norm", .transforms = {"none"}}}),
            "b:policy.shadowed");
}

TEST(Lint, finds_rules_that_require_and_deny_the_same) {
  EXPECT_EQ(codes({{.name = "a", .op = "norm", .prefer = {"reference"}},
                   {.name = "b", .op = "*", .deny = {"reference"}}}),
            "a:policy.contradiction");
  EXPECT_EQ(codes({{.name = "a", .op = "norm", .prefer = {"reference"}},
                   {.name = "b", .op = "*", .when = wide(), .deny = {"reference"}}}),
            "");
}

TEST(Lint, finds_expired_rules_and_duplicate_names) {
  EXPECT_EQ(codes({{.name = "a", .deny = {"vendor"}, .expires = "2020-01-01", .expired = true},
                   {.name = "a", .deny = {"reference"}}}),
            "a:policy.expired a:policy.duplicate_name");
}

TEST(Lint, finds_breakers_that_a_condition_keeps_from_having_an_effect) {
  Rule always{.name = "a", .op = "norm"};
  always.breaker.emplace().permits = 1;
  Rule sometimes = always;
  sometimes.name = "b";
  sometimes.when = wide();
  EXPECT_EQ(codes({sometimes, always}), "b:policy.unread");
}

TEST(Unmatched, counts_rules_of_which_nothing_is_present) {
  Policy policy;
  policy.rules = {{.op = "norm", .prefer = {"norm/absent.*", "vendor"}},
                  {.op = "norm", .prefer = {"norm/absent.*"}, .deny = {"vendor:absent"}},
                  {.op = "*", .strict = true}};
  EXPECT_EQ(unmatched_rules(policy, known()).size(), 1u);
  EXPECT_EQ(unmatched_of(policy, known()).size(), 3u);
}

TEST(Effects, tell_what_is_first_where_each_condition_is_true) {
  Policy policy;
  policy.rules = {{.name = "w", .op = "norm", .when = wide(), .require = {"reference"}},
                  {.name = "all", .op = "norm", .prefer = {"vendor"}}};
  const PolicySet set{{layer_of(Source::file, policy)}};
  const auto op = norm_operator();
  const auto compiled = OperatorPolicy::compile(set, nullptr, op);
  RunnableCandidates runnable(*op);
  EXPECT_EQ(compiled->conditions(), std::vector<std::string>{"H > 64"});
  EXPECT_EQ(effect_of(*compiled, *op, runnable, "").order.front(), "norm/acme.v1");
  const Effect wide_calls = effect_of(*compiled, *op, runnable, "H > 64");
  EXPECT_EQ(wide_calls.order, std::vector<std::string>{"norm/reference.scalar"});
  EXPECT_EQ(wide_calls.by, "\"all\" (file)");
}

}  // namespace
}  // namespace opmux::policy
