#include "policy/rules/operator_policy.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

const Condition kWide = Condition::dim("H", Compare::greater, 100);

TEST(OperatorPolicy, without_policy_priorities_alone_decide) {
  const Bench bench({});
  EXPECT_EQ(bench.ranking(), "simd acme onednn reference");
  EXPECT_FALSE(bench.view().has_list);
  EXPECT_FALSE(bench.view().strict);
  EXPECT_EQ(describe(bench.view().strict_by), "built-in");
  EXPECT_EQ(bench.score("simd"), 150);
  EXPECT_EQ(bench.dropped("simd"), registry::code_of(registry::Reason::none));
}

TEST(OperatorPolicy, strict_comes_from_the_strongest_source_that_sets_it) {
  const Bench off({{Source::code, {.strict = false}}, {Source::environment, {.strict = true}}});
  EXPECT_FALSE(off.view().strict);
  EXPECT_EQ(describe(off.view().strict_by), "code (code)");
  const Bench on({{Source::code, {.prefer = {"vendor"}}}, {Source::environment, {.strict = true}}});
  EXPECT_TRUE(on.view().strict);
  EXPECT_EQ(describe(on.view().strict_by), "OPMUX_STRICT (environment)");
}

TEST(OperatorPolicy, an_expired_strict_lapses) {
  EXPECT_FALSE(Bench({{Source::file, with_rule({.strict = true, .expired = true})}}).view().strict);
}

TEST(OperatorPolicy, strict_drops_no_candidate) {
  EXPECT_EQ(ranked({{Source::code, {.strict = true}}}), "simd acme onednn reference");
}

TEST(OperatorPolicy, reasons_say_which_constraint_dropped_a_candidate) {
  EXPECT_EQ(Bench({{Source::code, {.deny = {"vendor"}}}}).dropped("acme"), "policy.denied");
  EXPECT_EQ(Bench({{Source::code, {.deny_vendors = {"acme"}}}}).dropped("acme"),
            "policy.vendor_denied");
  EXPECT_EQ(Bench({{Source::code, {.require = {"default"}}}}).dropped("acme"),
            "policy.outside_require");
  EXPECT_EQ(Bench({{Source::code, {.per_op = {{"norm", {"default"}}}}}}).dropped("acme"),
            "policy.outside_order");
  EXPECT_EQ(Bench({{Source::code, {.allow = {"default"}}}}).dropped("acme"), "policy.not_allowed");
  EXPECT_EQ(Bench({{Source::code, {.allow_vendors = {"intel"}}}}).dropped("acme"),
            "policy.vendor_not_allowed");
}

TEST(OperatorPolicy, of_several_reasons_the_hardest_is_reported) {
  Policy policy{.require = {"default"},
                .deny = {"vendor:acme"},
                .allow = {"default"},
                .allow_vendors = {"intel"},
                .deny_vendors = {"acme"},
                .per_op = {{"norm", {"default"}}}};
  const auto told = [&] { return Bench({{Source::code, policy}}).dropped("acme"); };
  EXPECT_EQ(told(), "policy.denied");
  policy.deny.clear();
  EXPECT_EQ(told(), "policy.vendor_denied");
  policy.deny_vendors.clear();
  EXPECT_EQ(told(), "policy.outside_require");
  policy.require.clear();
  EXPECT_EQ(told(), "policy.outside_order");
  policy.per_op.clear();
  EXPECT_EQ(told(), "policy.not_allowed");
  policy.allow.clear();
  EXPECT_EQ(told(), "policy.vendor_not_allowed");
}

TEST(OperatorPolicy, a_weaker_denial_is_reported_before_a_stronger_require) {
  const Bench bench({{Source::scope, {.require = {"default"}}},
                     {Source::environment, {.deny_vendors = {"acme"}}}});
  EXPECT_EQ(bench.dropped("acme"), "policy.vendor_denied");
}

TEST(OperatorPolicy, of_two_denials_the_stronger_source_is_named) {
  const Bench bench({{Source::code, {.deny = {"vendor"}}},
                     {Source::file, with_rule({.name = "later", .deny = {"norm/acme.*"}})}});
  EXPECT_EQ(bench.dropped_by("acme"), "code (code)");
}

TEST(OperatorPolicy, names_all_requires_in_force) {
  const Bench bench(
      {{Source::code, {.require = {"default"}}},
       {Source::file,
        with_rule({.name = "lock", .require = {"vendor"}, .where = "policy.yaml:3"})}});
  ASSERT_EQ(bench.view().requires_by.size(), 2u);
  EXPECT_EQ(describe(bench.view().requires_by[0]), "code (code)");
  EXPECT_EQ(describe(bench.view().requires_by[1]), "\"lock\" (policy.yaml:3)");
}

TEST(OperatorPolicy, says_which_list_gave_the_tiers) {
  const Bench order({{Source::environment, {.per_op = {{"norm", {"default"}}}}}});
  EXPECT_TRUE(order.view().has_list);
  EXPECT_EQ(describe(order.view().list_by), "OPMUX_PER_OP (environment)");
  const Bench prefer({{Source::environment, {.prefer = {"vendor"}}}});
  EXPECT_EQ(describe(prefer.view().list_by), "OPMUX_PREFER (environment)");
}

TEST(OperatorPolicy, a_candidate_takes_the_first_place_that_matches) {
  const Bench bench({{Source::code, {.prefer = {"norm/acme.*", "vendor", "vendor:acme"}}}});
  EXPECT_EQ(bench.view().tiers, (std::vector<uint16_t>{0, 1, 3, 3}));
}

TEST(OperatorPolicy, adds_sum_and_multipliers_multiply_over_all_matching_rules) {
  const Bench bench(
      {{Source::code, with_rule({.boost = {{"norm/acme.*", 50, 2}, {"norm/*", 10, 1}}})},
       {Source::file, with_rule({.boost = {{"vendor:acme", 40, 1.5}}})},
       {Source::file, with_rule({.op = "softmax", .boost = {{"*/acme.*", 1000, 100}}})}});
  EXPECT_EQ(bench.score("acme"), (100 + 50 + 10 + 40) * 3.0);
  EXPECT_EQ(bench.score("simd"), 160);
}

TEST(OperatorPolicy, scores_are_kept_between_zero_and_a_million) {
  std::vector<Rule> rules(200, {.boost = {{"norm/acme.*", 0, 100}, {"norm/simd.*", -1000, 100}}});
  const Bench bench({{Source::file, {.rules = rules}}});
  EXPECT_EQ(bench.score("acme"), 1e6);
  EXPECT_EQ(bench.score("simd"), 0);
  EXPECT_EQ(bench.score("onednn"), 100);
}

TEST(OperatorPolicy, a_rule_counts_only_where_its_condition_holds) {
  Bench bench({{Source::file, with_rule({.when = kWide, .prefer = {"reference"}})}});
  EXPECT_EQ(bench.ranking({.hidden = 101}), "reference simd acme onednn");
  EXPECT_EQ(bench.ranking({.hidden = 100}), "simd acme onednn reference");
}

TEST(OperatorPolicy, conditions_guard_every_field) {
  Bench bench({{Source::file, with_rule({.when = kWide,
                                         .deny = {"default"},
                                         .boost = {{"norm/onednn.*", 10}},
                                         .strict = true,
                                         .allow_none = true})}});
  bench.evaluate({.hidden = 1});
  EXPECT_EQ(bench.ranking(), "simd acme onednn reference");
  EXPECT_FALSE(bench.view().strict || bench.view().allow_none);
  bench.evaluate({.hidden = 1000});
  EXPECT_EQ(bench.ranking(), "onednn acme reference");
  EXPECT_TRUE(bench.view().strict && bench.view().allow_none);
}

TEST(OperatorPolicy, the_first_matching_rule_gives_way_when_its_condition_fails) {
  Bench bench({{Source::file,
                {.rules = {{.when = kWide, .prefer = {"reference"}}, {.prefer = {"vendor"}}}}}});
  EXPECT_EQ(bench.ranking({.hidden = 1000}), "reference simd acme onednn");
  EXPECT_EQ(bench.ranking({.hidden = 1}), "acme onednn simd reference");
}

TEST(OperatorPolicy, a_rule_that_names_a_missing_dimension_does_not_apply_here) {
  const Condition long_context = Condition::dim("T", Compare::greater, 8192);
  EXPECT_EQ(ranked({{Source::file, {.rules = {{.when = !long_context, .deny = {"default"}}}}}}),
            "simd acme onednn reference");
}

TEST(OperatorPolicy, allow_none_holds_if_any_matching_rule_says_so) {
  EXPECT_FALSE(Bench({{Source::code, {.deny = {"*/*"}}}}).view().allow_none);
  EXPECT_TRUE(
      Bench({{Source::file, {.rules = {{.deny = {"*/*"}}, {.rank = 1, .allow_none = true}}}}})
          .view()
          .allow_none);
}

TEST(OperatorPolicy, depends_on_what_its_conditions_ask) {
  const Bench bench(
      {{Source::file,
        {.rules = {{.when = kWide && Condition::dtype("x", f16), .deny = {"default"}},
                   {.op = "softmax", .when = Condition::ambient("grad"), .deny = {"default"}}}}}});
  const schema::Dependencies& depends = bench.policy().dependencies();
  ASSERT_EQ(depends.questions().size(), 1u);
  EXPECT_EQ(depends.questions()[0].relation, schema::Relation::at_least);
  EXPECT_EQ(depends.questions()[0].value, 101);
  ASSERT_EQ(depends.exact().size(), 1u);
  EXPECT_EQ(depends.exact()[0].kind, schema::FactKind::dtype);
}

TEST(OperatorPolicy, a_rule_that_can_change_nothing_here_adds_no_dependency) {
  const Bench bench(
      {{Source::file, with_rule({.when = kWide, .deny = {"*/opencl.*"}, .reason = "driver"})}});
  EXPECT_TRUE(bench.policy().dependencies().facts().empty());
}

TEST(OperatorPolicy, a_view_can_be_used_again) {
  Bench bench({{Source::file, with_rule({.when = kWide,
                                         .require = {"reference"},
                                         .prefer = {"reference"},
                                         .boost = {{"norm/*", 5, 2}},
                                         .strict = true})}});
  bench.evaluate({.hidden = 1000});
  bench.evaluate({.hidden = 1});
  EXPECT_EQ(bench.ranking(), "simd acme onednn reference");
  EXPECT_FALSE(bench.view().has_list || bench.view().strict);
  EXPECT_TRUE(bench.view().requires_by.empty());
  EXPECT_EQ(bench.score("simd"), 150);
}

TEST(OperatorPolicy, an_operator_without_candidates_is_legal) {
  const auto op = make_operator("norm(out Tensor y[H], Tensor x[H])", {});
  const auto policy =
      OperatorPolicy::compile({{layer_of(Source::code, {.prefer = {"vendor"}})}}, nullptr, op);
  PolicyView view;
  policy->evaluate(BoundCall({}, *op->schema).signature(), view);
  EXPECT_TRUE(view.drops.empty() && view.tiers.empty() && view.scores.empty());
}

TEST(OperatorPolicy, outlives_the_set_it_was_compiled_from) {
  std::shared_ptr<const OperatorPolicy> policy;
  const auto op = norm_operator();
  {
    const PolicySet set{{layer_of(Source::file, with_rule({.name = "gone", .deny = {"default"}}))}};
    policy = OperatorPolicy::compile(set, nullptr, op);
  }
  PolicyView view;
  policy->evaluate(BoundCall({}, *op->schema).signature(), view);
  EXPECT_EQ(describe(view.drops[3].by), "\"gone\" (file)");
}

}  // namespace
}  // namespace opmux::policy
