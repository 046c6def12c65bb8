#include "policy/files/policy_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace opmux::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto policy = parse_policy(text, "p.yaml");
  EXPECT_FALSE(policy) << text;
  return std::string(policy.error().message());
}

TEST(PolicyReader, reads_every_key_of_format_1) {
  const auto read = parse_policy(R"(opmux: 1
defaults: {strict: true, prefer: [vendor], allow: ["*/*"]}
rules:
  - name: broken-driver
    op: "*"
    deny: ["*/opencl.*"]
    reason: wrong sums
    owner: kernels@example.com
    expires: 2027-02-01
  - op: rms_norm
    impl: rms_norm/acme.*
    require: [vendor, reference]
    prefer: [vendor]
    order: [reference]
    allow: ["rms_norm/*"]
    boost: [{multiply: 1.6}, {impl: vendor, add: -5}]
    strict: false
    breaker: {permits: 2}
    rank: 70
    allow_none: true
breaker: {consecutive_failures: 4, failure_rate: 0.5, window: 50, min_calls: 10, open_for: 30s,
          open_at_most: 5m, permits: 3, successes: 2}
shadow: {every: 64, on_mismatch: report, share: 0.05, memory_mb: 8}
names: strict
)",
                                 "p.yaml");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->strict, true);
  EXPECT_THAT(read->prefer, ElementsAre("vendor"));
  EXPECT_THAT(read->allow, ElementsAre("*/*"));
  EXPECT_TRUE(read->strict_names);
  EXPECT_EQ(read->shadow, (ShadowOptions{64, OnMismatch::report, 0.05, 8}));
  EXPECT_EQ(read->breaker,
            (BreakerOptions{4, 0.5, 50, 10, int64_t{30'000}, int64_t{300'000}, 3, 2}));
  ASSERT_EQ(read->rules.size(), 2u);
  const Rule& first = read->rules[0];
  EXPECT_EQ(first.name, "broken-driver");
  EXPECT_EQ(first.op, "*");
  EXPECT_THAT(first.deny, ElementsAre("*/opencl.*"));
  EXPECT_EQ(first.reason, "wrong sums");
  EXPECT_EQ(first.owner, "kernels@example.com");
  EXPECT_EQ(first.expires, "2027-02-01");
  EXPECT_EQ(first.where, "p.yaml:4");
  EXPECT_EQ(first.rank, 50);
  const Rule& second = read->rules[1];
  EXPECT_EQ(second.where, "p.yaml:10");
  EXPECT_THAT(second.require, ElementsAre("vendor", "reference"));
  EXPECT_THAT(second.order, ElementsAre("reference"));
  ASSERT_EQ(second.boost.size(), 2u);
  EXPECT_EQ(second.boost[0].impl, "rms_norm/acme.*");
  EXPECT_EQ(second.boost[0].multiply, 1.6);
  EXPECT_EQ(second.boost[1].add, -5);
  EXPECT_EQ(second.strict, false);
  EXPECT_EQ(second.breaker->permits, 2);
  EXPECT_EQ(second.rank, 70);
  EXPECT_TRUE(second.allow_none);
}

TEST(PolicyReader, reads_json_and_aliases) {
  const auto json =
      parse_policy(R"({"opmux": 1, "rules": [{"op": "rms_norm", "deny": ["vendor"]}]})", "p.json");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_THAT(json->rules.at(0).deny, ElementsAre("vendor"));
  const auto alias = parse_policy(
      "opmux: 1\nrules:\n  - {op: a, deny: &v [vendor]}\n  - {op: b, deny: *v}\n", "p.yaml");
  ASSERT_TRUE(alias) << alias.error().message();
  EXPECT_THAT(alias->rules.at(1).deny, ElementsAre("vendor"));
}

TEST(PolicyReader, reports_all_errors_with_their_positions) {
  const std::string message = refusal(
      "opmux: 1\nrules:\n  - deny: [vendor]\n    prefr: [vendor]\n"
      "    strict: on\n");
  EXPECT_EQ(
      message,
      "p.yaml:4:5: unknown key 'prefr' in a rule; did you mean 'prefer'?\n"
      "      prefr: [vendor]\n"
      "      ^\n"
      "p.yaml:5:13: strict: expected true or false, found the string 'on'; did you mean true, "
      "without quotes?\n"
      "      strict: on\n"
      "              ^");
}

TEST(PolicyReader, lists_the_keys_with_an_effect_for_a_rule_that_has_none) {
  EXPECT_THAT(refusal("opmux: 1\nrules: [{op: rms_norm}]"),
              HasSubstr("needs at least one of require, prefer, order, deny, allow, boost, "));
}

TEST(PolicyReader, refuses_oversized_input_before_building_it) {
  EXPECT_THAT(refusal(std::string(5 << 20, ' ')), HasSubstr("at most 4194304 are read"));
  EXPECT_THAT(refusal("opmux: " + std::string(40, '[')), HasSubstr("nested more than 32 deep"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "" : ", ") + before;
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("more than 400000 keys and values"));
}

}  // namespace
}  // namespace opmux::policy
