#include "policy/rules/policy_set.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

std::string names(const std::vector<const Rule*>& rules) {
  std::string text;
  for (const Rule* rule : rules) text += (text.empty() ? "" : " ") + rule->name;
  return text;
}

PolicyLayerPtr file(Policy policy) { return layer_of(Source::file, std::move(policy)); }

TEST(PolicyLayer, gives_the_rules_of_an_operator_by_rank_then_list_order) {
  const PolicyLayerPtr layer = file({.rules = {{.name = "a", .op = "norm"},
                                               {.name = "b", .op = "*", .rank = 60},
                                               {.name = "c", .op = "softmax", .rank = 900},
                                               {.name = "d", .op = "nor*"},
                                               {.name = "e", .op = "norm", .rank = 60},
                                               {.name = "f", .op = "acme.*"}}});
  EXPECT_EQ(names(layer->rules_for("norm")), "b e a d");
  EXPECT_EQ(names(layer->rules_for("softmax")), "c b");
  EXPECT_EQ(names(layer->rules_for("acme.fold")), "b f");
}

TEST(PolicyLayer, fails_as_validation_does) {
  const auto layer = PolicyLayer::make(Source::file, {.prefer = {"vendr"}}, "policy.yaml");
  EXPECT_EQ(layer.error().reason(), "policy.token");
}

TEST(PolicyLayer, knows_its_source_and_name) {
  const auto layer = PolicyLayer::make(Source::code, {.strict = true}, "set_policy").value();
  EXPECT_EQ(layer->source(), Source::code);
  EXPECT_EQ(layer->name(), "set_policy");
  EXPECT_TRUE(*layer->policy().strict);
}

TEST(PolicyLayer, sources_have_words) {
  const char* words[] = {"scope", "code", "file", "environment", "platform", "built-in"};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(name_of(static_cast<Source>(i)), words[i]);
}

TEST(PolicyHash, is_zero_for_an_empty_policy) {
  EXPECT_EQ(file({})->hash_for("norm"), 0u);
  EXPECT_EQ(file({.rules = {{.op = "softmax", .deny = {"vendor"}}}})->hash_for("norm"), 0u);
  EXPECT_EQ(file({.per_op = {{"softmax", {"vendor"}}}})->hash_for("norm"), 0u);
}

TEST(PolicyHash, changes_with_every_field_that_matters) {
  const Condition grad = Condition::ambient("grad"), training = Condition::ambient("training");
  const std::vector<std::string> vendor{"vendor"};
  const std::vector<Policy> policies{{.prefer = vendor},
                                     {.require = vendor},
                                     {.deny = vendor},
                                     {.allow = vendor},
                                     {.strict = true},
                                     {.strict = false},
                                     {.allow_vendors = vendor},
                                     {.deny_vendors = vendor},
                                     {.per_op = {{"norm", vendor}}},
                                     {.rules = {{.require = vendor}}},
                                     {.rules = {{.prefer = vendor}}},
                                     {.rules = {{.order = vendor}}},
                                     {.rules = {{.deny = vendor}}},
                                     {.rules = {{.allow = vendor}}},
                                     {.rules = {{.boost = {{"norm/*", 1, 1}}}}},
                                     {.rules = {{.boost = {{"norm/*", 0, 2}}}}},
                                     {.rules = {{.boost = {{"norm/a*", 1, 1}}}}},
                                     {.rules = {{.strict = true}}},
                                     {.rules = {{.when = grad, .deny = vendor}}},
                                     {.rules = {{.when = training, .deny = vendor}}},
                                     {.rules = {{.when = !grad, .deny = vendor}}},
                                     {.rules = {{.deny = vendor, .expired = true}}},
                                     {.rules = {{.deny = vendor, .allow_none = true}}},
                                     {.outer = std::make_shared<Policy>(Policy{.prefer = vendor})}};
  std::vector<uint64_t> hashes;
  for (const Policy& policy : policies) hashes.push_back(file(policy)->hash_for("norm"));
  std::sort(hashes.begin(), hashes.end());
  EXPECT_NE(hashes.front(), 0u);
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

/// Lockfiles contain these hashes, so a release that changes one refuses the lockfiles of the last.
TEST(PolicyHash, of_each_rule_key_is_the_one_that_lockfiles_contain) {
  const std::vector<std::string> vendor{"vendor"};
  const Condition wide = Condition::dim("H", Compare::greater, 8192);
  const std::vector<std::pair<Rule, uint64_t>> rules{
      {{.name = "a", .deny = vendor}, 0xda81b21c9ee1dc72u},
      {{.op = "n*", .deny = vendor}, 0xda81b21c9ee1dc72u},
      {{.impl = "norm/*", .deny = vendor}, 0xda81b21c9ee1dc72u},
      {{.when = wide, .deny = vendor}, 0xb45b2e81b33104beu},
      {{.when = Condition::parse("H > 8192").value(), .deny = vendor}, 0x49b1aff915cba9e8u},
      {{.require = vendor}, 0x0f0aa360e813b41bu},
      {{.prefer = vendor}, 0x0f2c6d503272207au},
      {{.order = {"vendor:acme", "reference"}}, 0x2b9ea24cd9cc150fu},
      {{.deny = vendor}, 0xda81b21c9ee1dc72u},
      {{.allow = vendor}, 0xbf04e32e879e82afu},
      {{.boost = {{"norm/*", 20, 1.5}}}, 0xb8613d196e981cc6u},
      {{.transforms = {"contiguous", "widen"}}, 0xf37f20c98738e52du},
      {{.strict = true}, 0x1d1917eb2ea41210u},
      {{.strict = false}, 0x0ffc0741d2f8c2beu},
      {{.breaker = BreakerOptions{.window = 7}}, 0xed5cc0bb79075378u},
      {{.deny = vendor, .rank = 7}, 0xda81b21c9ee1dc72u},
      {{.deny = vendor, .reason = "a", .owner = "b", .expires = "2127-02-01"}, 0xda81b21c9ee1dc72u},
      {{.deny = vendor, .expired = true}, 0x77f7fafe2bfcea17u},
      {{.deny = vendor, .allow_none = true}, 0x5a86c3f54fad1f0fu},
      {{.deny = vendor, .expired = true, .allow_none = true, .where = "policy.yaml:3"},
       0x37ea8b09af7b5f14u},
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(file({.rules = {rules[i].first}})->hash_for("norm"), rules[i].second) << i;
  }
}

TEST(PolicyHash, does_not_change_with_labels_or_rules_of_other_operators) {
  const Rule rule{.name = "a", .op = "norm", .deny = {"vendor"}, .where = "policy.yaml:3"};
  Rule moved = rule;
  moved.name = "b", moved.where = "policy.yaml:9", moved.owner = "x", moved.reason = "y";
  const Rule other{.op = "softmax", .deny = {"vendor"}, .rank = 900};
  EXPECT_EQ(file({.rules = {rule}})->hash_for("norm"),
            file({.rules = {other, moved}})->hash_for("norm"));
}

TEST(PolicyHash, changes_with_the_order_of_rules) {
  const Rule a{.prefer = {"vendor"}}, b{.prefer = {"reference"}};
  EXPECT_NE(file({.rules = {a, b}})->hash_for("norm"), file({.rules = {b, a}})->hash_for("norm"));
}

TEST(PolicyHash, of_a_set_depends_on_the_source_but_not_on_silent_layers) {
  const Policy policy{.deny = {"vendor"}};
  const PolicySet in_file{{layer_of(Source::file, policy)}};
  const PolicySet in_code{{layer_of(Source::code, policy)}};
  const PolicySet with_silent{{layer_of(Source::code, {.per_op = {{"softmax", {"vendor"}}}}),
                               layer_of(Source::file, policy)}};
  EXPECT_NE(in_file.hash_for("norm"), in_code.hash_for("norm"));
  EXPECT_EQ(in_file.hash_for("norm"), with_silent.hash_for("norm"));
  EXPECT_EQ(PolicySet{}.hash_for("norm"), 0u);
}

TEST(PolicyPart, has_the_rules_of_one_operator_in_their_order_and_everything_general) {
  const PolicyLayerPtr whole =
      file({.deny = {"vendor:acme"},
            .per_op = {{"norm", {"vendor"}}, {"softmax", {"reference"}}},
            .rules = {{.name = "a", .op = "norm", .prefer = {"vendor"}},
                      {.name = "b", .op = "softmax", .prefer = {"vendor"}},
                      {.name = "c", .op = "n*", .prefer = {"reference"}, .rank = 60}}});
  const PolicyLayerPtr part = whole->part_for("norm");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(names(part->rules_for("norm")), "c a");
  EXPECT_EQ(part->policy().rules.size(), 2u);
  EXPECT_EQ(part->policy().per_op.size(), 1u);
  EXPECT_EQ(part->name(), whole->name());
  EXPECT_EQ(part->source(), Source::file);
  EXPECT_EQ(part->hash_for("norm"), whole->hash_for("norm"));
}

TEST(PolicyPart, keeps_the_underlying_policies) {
  const Policy outer{.rules = {{.op = "norm", .deny = {"vendor"}}, {.op = "softmax"}}};
  const PolicyLayerPtr whole = layer_of(Source::scope, combine(outer, {.prefer = {"reference"}}));
  const PolicyLayerPtr part = whole->part_for("norm");
  ASSERT_NE(part->outer(), nullptr);
  EXPECT_EQ(part->outer()->policy().rules.size(), 1u);
  EXPECT_EQ(part->hash_for("norm"), whole->hash_for("norm"));
}

TEST(PolicyPart, of_an_unaffected_operator_is_empty) {
  const PolicyLayerPtr layer = file({.rules = {{.op = "softmax", .prefer = {"vendor"}}}});
  EXPECT_EQ(layer->part_for("norm"), nullptr);
  EXPECT_TRUE((PolicySet{{layer}}.part_for("norm").layers.empty()));
}

/// 10,000 rules over 300 operators, some of them for all operators.
Policy large_policy() {
  Policy policy;
  for (int i = 0; i < 10'000; ++i) {
    policy.rules.push_back({.name = "rule-" + std::to_string(i),
                            .op = i % 1000 == 0 ? "*" : "op_" + std::to_string(i % 300),
                            .when = Condition::dim("H", Compare::greater, i),
                            .deny = {"*/acme.*"},
                            .rank = i % 1000});
  }
  return policy;
}

using Names = std::vector<std::string_view>;

TEST(PolicyDifference, names_the_operators_of_the_layers_that_differ) {
  const PolicyLayerPtr same = file({.rules = {{.op = "same", .deny = {"vendor"}}}});
  const PolicyLayerPtr before = file({.rules = {{.op = "norm"}, {.op = "norm"}}});
  Policy outer{.rules = {{.op = "linear"}}};
  const PolicyLayerPtr after =
      file({.per_op = {{"softmax", {"vendor"}}}, .outer = std::make_shared<const Policy>(outer)});
  const PolicySet from{{before, same}}, to{{after, same}};
  EXPECT_EQ(to.differing(from), (Names{"linear", "norm", "softmax"}));
  EXPECT_EQ(from.differing(to), (Names{"linear", "norm", "softmax"}));
  EXPECT_EQ(from.differing(from), Names());
}

TEST(PolicyDifference, may_be_any_operator_for_patterns_and_general_fields) {
  const PolicySet named{{file({.rules = {{.op = "norm"}}})}};
  for (const Policy& policy :
       {Policy{.rules = {{.op = "n*"}}}, Policy{.prefer = {"vendor"}},
        Policy{.outer = std::make_shared<const Policy>(Policy{.deny_vendors = {"acme"}})}}) {
    EXPECT_EQ((PolicySet{{file(policy)}}.differing(named)), std::nullopt);
    EXPECT_EQ((named.differing(PolicySet{{file(policy)}})), std::nullopt);
  }
}

TEST(PolicyScale, an_operator_sees_only_its_own_of_10000_rules) {
  const PolicyLayerPtr layer = file(large_policy());
  size_t seen = 0;
  for (int op = 0; op < 300; ++op) {
    const size_t own = layer->rules_for("op_" + std::to_string(op)).size();
    EXPECT_LE(own, 34u + 10u);
    seen += own;
  }
  EXPECT_EQ(seen, 10'000u - 10u + 300u * 10u);
}

TEST(PolicyScale, indexing_10000_rules_and_reading_all_operators_is_fast) {
  Policy policy = large_policy();
  const auto start = std::chrono::steady_clock::now();
  const PolicyLayerPtr layer = file(std::move(policy));
  uint64_t all = 0;
  for (int round = 0; round < 10; ++round) {
    for (int op = 0; op < 300; ++op) all ^= layer->hash_for("op_" + std::to_string(op)) + op;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_NE(all, 1u);
  // Checking each rule for each operator would take 30 million steps. The limit allows for
  // instrumented builds.
  EXPECT_LT(took.count(), 5.0);
}

}  // namespace
}  // namespace opmux::policy
