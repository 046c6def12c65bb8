#include "stage.hpp"

namespace opmux::test {
namespace {

struct Ruled : Stage {
  Ruled() : Stage(bare()), op(define(kCopy)) {
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/acme.one", .kind = Kind::vendor, .vendor = "acme"});
  }
  /// The implementation that runs under a rule that prefers acme where the condition is true.
  std::string run_where(std::string_view condition) {
    Policy policy;
    policy.rules.push_back(
        {.op = "copy", .when = Condition::parse(condition).value(), .prefer = {"vendor:acme"}});
    EXPECT_TRUE(runtime.policy().set(policy).ok()) << condition;
    const Rows rows;
    return ran_by([&] { (void)op(rows.y, rows.x); });
  }
  Status check(const std::string& condition) {
    return runtime.policy()
        .check(
            "opmux: 1\nrules: [{op: copy, when: '" + condition + "', prefer: [\"vendor:acme\"]}]\n",
            "p.yaml")
        .error();
  }
  Operator op;
};

TEST(Defects, not_in_is_parsed_as_in) {
  Ruled stage;
  EXPECT_EQ(stage.run_where("dtype(x) in [\"f32\", \"f16\"]"), "copy/acme.one");
  EXPECT_EQ(stage.run_where("!(dtype(x) in [\"f32\", \"f16\"])"), "copy/fast.one");
  EXPECT_EQ(stage.run_where("!(dtype(x) in [\"bf16\"])"), "copy/acme.one");
  // The operator name of other systems must not be read as an identifier.
  const Status status = stage.check("dtype(x) not_in [\"f32\"]");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("write !(x in [...])"));
}

TEST(Defects, a_condition_on_an_unknown_field_never_matches_silently) {
  Ruled stage;
  const Status status = stage.check("seq_len_gt == 5");
  EXPECT_EQ(status.reason(), "policy.when");
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("p.yaml:2:27: when: operator copy has no dimension or argument "
                                   "'seq_len_gt'"));
}

}  // namespace
}  // namespace opmux::test
