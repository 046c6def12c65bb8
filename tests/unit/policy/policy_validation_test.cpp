#include <cmath>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <opmux/policy.hpp>

namespace opmux {
namespace {

std::string reason(const Policy& policy) { return std::string(validate(policy).reason()); }
std::string reason(const Rule& rule) { return reason(Policy{.rules = {rule}}); }
std::string message(const Rule& rule) {
  return std::string(validate(Policy{.rules = {rule}}).message());
}

TEST(PolicyValidation, accepts_an_empty_policy_and_a_full_one) {
  EXPECT_TRUE(validate({}).ok());
  const Policy full{.prefer = {"vendor:acme", "default"},
                    .require = {"*/simd.*"},
                    .deny = {"impl:norm/acme.v1"},
                    .allow = {"reference"},
                    .strict = true,
                    .allow_vendors = {"acme"},
                    .deny_vendors = {"intel"},
                    .per_op = {{"norm", {"default"}}, {"acme.fold", {"vendor"}}},
                    .rules = {{.op = "norm*",
                               .boost = {{"norm/*", -1000, 100}},
                               .rank = 1000,
                               .expires = "2028-02-29"}}};
  EXPECT_EQ(validate(full).to_string(), "ok");
}

TEST(PolicyValidation, refuses_an_unknown_token_in_every_list) {
  const std::vector<std::string> bad{"vendr"};
  for (const Policy& policy : {Policy{.prefer = bad}, Policy{.require = bad}, Policy{.deny = bad},
                               Policy{.allow = bad}, Policy{.per_op = {{"norm", bad}}}}) {
    EXPECT_EQ(reason(policy), "policy.token");
  }
  for (const Rule& rule : {Rule{.require = bad}, Rule{.prefer = bad}, Rule{.order = bad},
                           Rule{.deny = bad}, Rule{.allow = bad}, Rule{.boost = {{"vendr"}}}}) {
    EXPECT_EQ(reason(rule), "policy.token");
  }
}

TEST(PolicyValidation, a_message_names_rule_place_field_and_nearest_word) {
  const std::string text =
      message({.name = "first", .prefer = {"vendr"}, .where = "policy.yaml:12"});
  EXPECT_EQ(text.find("rule \"first\" (policy.yaml:12): prefer: "), 0u) << text;
  EXPECT_NE(text.find("did you mean 'vendor'?"), std::string::npos) << text;
}

TEST(PolicyValidation, a_rule_without_a_name_is_called_by_its_number) {
  const Policy policy{.rules = {{}, {.rank = -1}}};
  EXPECT_EQ(std::string(validate(policy).message()).find("rule 2: rank"), 0u);
}

TEST(PolicyValidation, refuses_operators_that_cannot_exist) {
  for (const char* op : {"", "Norm", "norm/x", "a.b.c", "no rm", "1norm"}) {
    EXPECT_EQ(reason(Rule{.op = op}), "policy.op") << op;
  }
  for (const char* op : {"*", "norm*", "acme.*", "*_norm", "norm", "acme.fold"}) {
    EXPECT_EQ(reason(Rule{.op = op}), "") << op;
  }
  EXPECT_EQ(reason(Policy{.per_op = {{"norm*", {"default"}}}}), "policy.op");
}

TEST(PolicyValidation, an_order_per_operator_is_not_empty) {
  EXPECT_EQ(reason(Policy{.per_op = {{"norm", {}}}}), "policy.token");
}

TEST(PolicyValidation, keeps_ranks_between_0_and_1000) {
  EXPECT_EQ(reason(Rule{.rank = 0}), "");
  EXPECT_EQ(reason(Rule{.rank = 1000}), "");
  EXPECT_EQ(reason(Rule{.rank = -1}), "policy.rank");
  EXPECT_EQ(reason(Rule{.rank = 1001}), "policy.rank");
}

TEST(PolicyValidation, keeps_boosts_in_range) {
  const auto boosted = [](double add, double multiply) {
    return reason(Rule{.boost = {{"norm/*", add, multiply}}});
  };
  EXPECT_EQ(boosted(1000, 0.01), "");
  EXPECT_EQ(boosted(-1000, 100), "");
  EXPECT_EQ(boosted(1000.5, 1), "policy.boost");
  EXPECT_EQ(boosted(-1001, 1), "policy.boost");
  EXPECT_EQ(boosted(0, 0.009), "policy.boost");
  EXPECT_EQ(boosted(0, 101), "policy.boost");
  EXPECT_EQ(boosted(std::nan(""), 1), "policy.boost");
  EXPECT_EQ(boosted(0, std::nan("")), "policy.boost");
}

TEST(PolicyValidation, wants_real_dates) {
  for (const char* date : {"2027-02-01", "2028-02-29"}) {
    EXPECT_EQ(reason(Rule{.expires = date}), "") << date;
  }
  for (const char* date : {"2027-2-1", "2027-02-30", "tomorrow", "2027/02/01", "2027-13-01",
                           "2027-02-01T00", "-027-02-01", "+027-02-01"}) {
    EXPECT_EQ(reason(Rule{.expires = date}), "policy.expires") << date;
  }
}

TEST(PolicyValidation, vendors_are_names_not_tokens) {
  EXPECT_EQ(reason(Policy{.allow_vendors = {"vendor:acme"}}), "policy.vendor");
  EXPECT_EQ(reason(Policy{.deny_vendors = {""}}), "policy.vendor");
}

TEST(PolicyValidation, refuses_conditions_that_no_operator_could_answer) {
  const auto when = [](const Condition& condition) { return reason(Rule{.when = condition}); };
  EXPECT_EQ(when(Condition::ambient("grad")), "");
  EXPECT_EQ(when(Condition::ambient("gradient")), "policy.when");
  EXPECT_EQ(when(Condition::dim("H", Compare::multiple_of, 0)), "policy.when");
  EXPECT_EQ(when(Condition::aligned("x", 48)), "policy.when");
  EXPECT_EQ(when(Condition::aligned("x", 8192)), "policy.when");
  EXPECT_EQ(when(Condition::layout("x", "0133")), "policy.when");
  EXPECT_EQ(when(Condition::layout("x", "")), "policy.when");
  EXPECT_EQ(when(Condition::layout("x", "76543210")), "");
  EXPECT_EQ(when(Condition::layout("x", "876543210")), "policy.when");
  EXPECT_EQ(when(!(Condition::tag(1) && Condition::layout("x", "09"))), "policy.when");
}

TEST(PolicyValidation, an_unknown_ambient_word_names_the_nearest) {
  EXPECT_NE(message({.when = Condition::ambient("capture")}).find("'capturing'"),
            std::string::npos);
}

TEST(PolicyValidation, bounds_the_depth_and_size_of_conditions) {
  Condition deep = Condition::tag(1);
  for (int i = 0; i < 100; ++i) deep = !deep;
  EXPECT_EQ(reason(Rule{.when = deep}), "policy.when");
  Condition wide = Condition::tag(0);
  for (uint32_t i = 1; i < 1100; ++i) wide = wide || Condition::tag(i);
  EXPECT_EQ(reason(Rule{.when = wide}), "policy.when");
}

TEST(PolicyValidation, bounds_the_length_of_lists) {
  EXPECT_EQ(reason(Policy{.deny = std::vector<std::string>(1024, "vendor")}), "");
  EXPECT_EQ(reason(Policy{.deny = std::vector<std::string>(1025, "vendor")}), "policy.token");
}

TEST(PolicyValidation, looks_at_the_policies_underneath_too) {
  const Policy policy{.outer = std::make_shared<Policy>(Policy{.prefer = {"vendr"}})};
  EXPECT_EQ(reason(policy), "policy.token");
}

TEST(PolicyValidation, bounds_the_depth_of_stacked_policies) {
  Policy policy{.deny = {"norm/acme.first"}};
  for (int i = 1; i < 64; ++i) {
    policy = combine(policy, {.deny = {"norm/acme.v" + std::to_string(i)}});
  }
  EXPECT_EQ(reason(policy), "");
  policy = combine(policy, {.deny = {"norm/acme.last"}});
  EXPECT_EQ(reason(policy), "policy.too_deep");
}

TEST(Policy, is_empty_until_it_says_something) {
  EXPECT_TRUE(Policy{}.empty());
  EXPECT_FALSE(Policy{.strict = false}.empty());
  EXPECT_FALSE((Policy{.rules = {{}}}.empty()));
  EXPECT_FALSE((Policy{.per_op = {{"norm", {"default"}}}}.empty()));
  EXPECT_FALSE(Policy{.outer = std::make_shared<Policy>(Policy{.strict = true})}.empty());
}

}  // namespace
}  // namespace opmux
