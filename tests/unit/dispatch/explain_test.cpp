#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kNormWithDefaults =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], float eps = 1e-6, "
    "bool fast = false, int n = 3)";

struct ExplainTest : testing::Test, Stage {
  ExplainTest() : op(define(kNormWithDefaults)) {
    add({.id = "norm/choosy.one", .kind = Kind::default_, .caps = Caps{}.multiple_of("H", 4100)});
    add({.id = "norm/acme.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "norm/plain.one", .kind = Kind::reference});
  }
  Operator op;
  const Rows rows;
};

TEST_F(ExplainTest, shows_the_decision_with_a_reason_for_every_candidate) {
  const Explanation why = op.explain(rows.y, rows.x, rows.w);
  EXPECT_EQ(why.chosen, "norm/acme.one");
  ASSERT_EQ(why.candidates.size(), 3u);
  EXPECT_EQ(why.candidates[0].verdict, "chosen");
  EXPECT_TRUE(why.candidates[0].accepted());
  EXPECT_EQ(why.candidates[1].verdict, "last resort");
  EXPECT_EQ(why.candidates[2].code, "caps.multiple_of");
  EXPECT_EQ(why.candidates[2].reason, "H must be a multiple of 4100, is 8");
  EXPECT_FALSE(why.candidates[2].accepted());
  EXPECT_EQ(why.device, "cpu:0");
  EXPECT_EQ(why.arguments, "y=f32[2,8] x=f32[2,8] w=f32[8] eps=1e-06 fast=false n=3");
  EXPECT_FALSE(why.strict);
  EXPECT_EQ(why.generation, runtime.generation());
  EXPECT_THAT(why.depends_on, testing::Contains("H"));
  EXPECT_THAT(why.independent, testing::ElementsAre("rows"));
}

TEST_F(ExplainTest, infers_outputs_that_are_left_out) {
  const Explanation why = op.explain(none, rows.x);
  EXPECT_EQ(why.chosen, "norm/acme.one");
  EXPECT_EQ(why.arguments, "y=f32[2,8] x=f32[2,8] eps=1e-06 fast=false n=3");
}

TEST_F(ExplainTest, of_arguments_that_do_not_fit_is_a_note) {
  const Explanation why = op.explain(rows.y, TensorView(rows.in, f32, {3, 8}));
  EXPECT_TRUE(why.candidates.empty());
  EXPECT_NE(why.note.find("invalid_argument"), std::string::npos) << why.note;
  EXPECT_NE(op.explain(none, 3).note.find("schema.argument_type"), std::string::npos);
}

TEST_F(ExplainTest, names_the_sources_of_the_order_and_of_boosts) {
  ASSERT_TRUE(runtime.policy()
                  .set({.prefer = {"reference"},
                        .strict = true,
                        .rules = {{.op = "norm", .boost = {{"norm/acme.*", 5, 2}}}}})
                  .ok());
  const Explanation why = op.explain(rows.y, rows.x);
  EXPECT_EQ(why.chosen, "norm/plain.one");
  EXPECT_TRUE(why.strict);
  EXPECT_NE(why.candidates[0].reason.find("first by"), std::string::npos);
  EXPECT_EQ(why.candidates[1].id, "norm/acme.one");
  EXPECT_EQ(why.candidates[1].score, 210);
  EXPECT_NE(why.candidates[1].reason.find("score 210"), std::string::npos);
}

TEST_F(ExplainTest, of_an_operator_without_candidates_has_the_error_as_its_note) {
  const PolicyScope scope(runtime, {.require = {"vendor:zeta"}});
  const Explanation why = op.explain(rows.y, rows.x);
  EXPECT_TRUE(why.chosen.empty());
  EXPECT_NE(why.note.find("no implementation of norm is left"), std::string::npos);
}

}  // namespace
}  // namespace opmux::test
