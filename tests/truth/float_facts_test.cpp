#include <gmock/gmock.h>

#include <limits>

#include "stage.hpp"

/// Float arguments in the conditions of rules: the choice follows the value of each call, also of
/// calls that repeat an earlier one.
namespace opmux::test {
namespace {

struct TruthOfFloats : testing::Test {
  void deny_fast(const std::string& when) const {
    const Status status = stage.runtime.policy().load(
        "opmux: 1\nrules:\n  - op: scale\n    when: '" + when + "'\n    deny: [default]\n",
        "policy.yaml");
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::string ran(double factor) const {
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x, factor).ok()); });
  }

  Rows rows;
  mutable Stage stage;
  const Operator op =
      stage.define("scale(out Tensor y[..., H], Tensor x[..., H], float factor = 1.0)");
  RecordingKernel& fast = stage.add({.id = "scale/fast.one", .kind = Kind::default_});
  RecordingKernel& plain = stage.add({.id = "scale/plain.one", .kind = Kind::reference});
};

TEST_F(TruthOfFloats, a_rule_compares_a_float_argument) {
  deny_fast("factor < 1e-5 || factor == 0.125");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(ran(1e-6), "scale/plain.one");
    EXPECT_EQ(ran(1e-5), "scale/fast.one");
    EXPECT_EQ(ran(0.125), "scale/plain.one");
    EXPECT_EQ(ran(0.1250001), "scale/fast.one");
  }
  EXPECT_THAT(op.explain(rows.y, rows.x, 0.125).depends_on, testing::Contains("factor"));
}

TEST_F(TruthOfFloats, a_rule_in_code_compares_a_float_argument) {
  Rule rule{.op = "scale", .deny = {"default"}};
  rule.when = Condition::scalar("factor", Compare::less, 0.5);
  ASSERT_TRUE(stage.runtime.policy().set({.rules = {rule}}).ok());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(ran(0.25), "scale/plain.one");
    EXPECT_EQ(ran(0.75), "scale/fast.one");
  }
}

TEST_F(TruthOfFloats, floats_with_one_answer_share_a_decision) {
  deny_fast("factor < 0.5");
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(ran(i), "scale/fast.one");
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 1u);
  EXPECT_THAT(lock.choices[0].when, testing::HasSubstr("(factor<0.5) == false"));
  EXPECT_TRUE(stage.runtime.lockfile().check(lock).ok());
}

TEST_F(TruthOfFloats, minus_zero_is_zero_and_not_an_absent_argument) {
  deny_fast("factor == 0.0");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(ran(-0.0), "scale/plain.one");
    EXPECT_EQ(ran(1.0), "scale/fast.one");
    EXPECT_EQ(ran(0.0), "scale/plain.one");
  }
}

TEST_F(TruthOfFloats, a_nan_is_neither_less_nor_equal) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  deny_fast("factor != factor");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ran(nan), "scale/plain.one");
    EXPECT_EQ(ran(1.0), "scale/fast.one");
  }
  deny_fast("factor < 1.0 || factor >= 1.0");
  EXPECT_EQ(ran(nan), "scale/fast.one");
}

TEST_F(TruthOfFloats, a_verifier_is_shown_minus_zero_as_zero) {
  std::vector<int64_t> seen;
  stage.add({.id = "scale/asked.one",
             .kind = Kind::vendor,
             .vendor = "acme",
             .verify = [&](const Facts& facts) -> std::string {
               seen.push_back(facts.get(OPMUX_FACT_SCALAR, "factor").value_or(-1));
               return "not now";
             },
             .verify_reads = {{{OPMUX_FACT_SCALAR, "factor"}}}});
  EXPECT_EQ(ran(-0.0), "scale/fast.one");
  EXPECT_THAT(seen, testing::Each(0));
  EXPECT_FALSE(seen.empty());
}

}  // namespace
}  // namespace opmux::test
