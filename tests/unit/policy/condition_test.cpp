#include "policy/conditions/condition_program.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/tag_table.hpp"
#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

bool holds(const Condition& condition, const NormCall& call = {}) {
  const auto op = norm_operator();
  const auto program = ConditionProgram::compile(condition, *op->schema);
  EXPECT_TRUE(program.has_value()) << condition.to_string();
  return program && program->holds(BoundCall(call, *op->schema).signature());
}

bool applies(const Condition& condition) {
  return ConditionProgram::compile(condition, *norm_operator()->schema).has_value();
}

TEST(Condition, compares_a_dimension_in_every_way) {
  const struct {
    Compare compare;
    bool below, equal, above;
  } rows[] = {{Compare::equal, false, true, false},   {Compare::not_equal, true, false, true},
              {Compare::less, true, false, false},    {Compare::less_equal, true, true, false},
              {Compare::greater, false, false, true}, {Compare::greater_equal, false, true, true}};
  for (const auto& row : rows) {
    const Condition condition = Condition::dim("H", row.compare, 100);
    EXPECT_EQ(holds(condition, {.hidden = 99}), row.below) << condition.to_string();
    EXPECT_EQ(holds(condition, {.hidden = 100}), row.equal) << condition.to_string();
    EXPECT_EQ(holds(condition, {.hidden = 101}), row.above) << condition.to_string();
  }
}

TEST(Condition, asks_for_multiples) {
  EXPECT_TRUE(holds(Condition::dim("H", Compare::multiple_of, 16), {.hidden = 64}));
  EXPECT_FALSE(holds(Condition::dim("H", Compare::multiple_of, 16), {.hidden = 65}));
}

TEST(Condition, the_ends_of_the_number_range_do_not_wrap) {
  EXPECT_FALSE(holds(Condition::dim("H", Compare::less, INT64_MIN)));
  EXPECT_FALSE(holds(Condition::dim("H", Compare::greater, INT64_MAX)));
  EXPECT_TRUE(holds(Condition::dim("H", Compare::less_equal, INT64_MAX)));
}

TEST(Condition, rows_are_the_product_of_leading_dimensions) {
  EXPECT_TRUE(holds(Condition::rows(Compare::equal, 32)));
  EXPECT_FALSE(holds(Condition::rows(Compare::equal, 31)));
}

TEST(Condition, reads_the_element_type_rank_and_presence) {
  EXPECT_TRUE(holds(Condition::dtype("x", bf16), {.dtype = bf16}));
  EXPECT_FALSE(holds(Condition::dtype("x", f16), {.dtype = bf16}));
  EXPECT_TRUE(holds(Condition::rank("x", Compare::equal, 2)));
  EXPECT_TRUE(holds(Condition::present("weight"), {.weight = true}));
  EXPECT_FALSE(holds(Condition::present("weight"), {.weight = false}));
}

TEST(Condition, a_device_is_compared_by_type_whatever_its_number) {
  const Condition condition = Condition::device("x", OPMUX_DEVICE_CPU + 1);
  EXPECT_TRUE(holds(condition, {.device_type = OPMUX_DEVICE_CPU + 1, .device_id = 3}));
  EXPECT_FALSE(holds(condition, {.device_type = OPMUX_DEVICE_CPU}));
}

TEST(Condition, reads_contiguity_alignment_and_layout) {
  EXPECT_TRUE(holds(Condition::contiguous("x")));
  EXPECT_TRUE(holds(Condition::aligned("x", 64)));
  EXPECT_FALSE(
      holds(Condition::aligned("x", 64), {.data = reinterpret_cast<void*>(uintptr_t{4096 + 32})}));
  EXPECT_TRUE(holds(Condition::layout("x", "01")));
  EXPECT_FALSE(holds(Condition::layout("x", "10")));
}

TEST(Condition, reads_scalars_ambient_words_and_the_tag) {
  EXPECT_TRUE(holds(Condition::scalar("window", Compare::greater, 0), {.window = 128}));
  EXPECT_TRUE(holds(Condition::scalar("causal", Compare::equal, 1), {.causal = true}));
  EXPECT_TRUE(holds(Condition::ambient("grad"), {.ambient = schema::kGrad}));
  EXPECT_FALSE(holds(Condition::ambient("training"), {.ambient = schema::kGrad}));
  EXPECT_TRUE(holds(Condition::tag(7), {.tag = 7}));
  EXPECT_FALSE(holds(Condition::tag(7), {.tag = 8}));
}

TEST(Condition, joins_by_and_or_and_not) {
  const Condition wide = Condition::dim("H", Compare::greater, 100);
  const Condition half = Condition::dtype("x", f16);
  const Condition graded = Condition::ambient("grad");
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      for (const bool c : {false, true}) {
        const NormCall call{
            .hidden = a ? 101 : 99, .dtype = b ? f16 : f32, .ambient = c ? schema::kGrad : 0};
        EXPECT_EQ(holds(wide && half && graded, call), a && b && c);
        EXPECT_EQ(holds(wide || half || graded, call), a || b || c);
        EXPECT_EQ(holds((wide && half) || graded, call), (a && b) || c);
        EXPECT_EQ(holds(wide && (half || !graded), call), a && (b || !c));
        EXPECT_EQ(holds(!(wide || half) && !graded, call), !(a || b) && !c);
      }
    }
  }
}

TEST(Condition, a_question_about_something_absent_is_neither_true_nor_false) {
  const Condition absent = Condition::dim("W", Compare::greater_equal, 0);
  const Condition wide = Condition::dim("H", Compare::greater, 1);
  for (const Condition& unknown :
       {absent, !absent, Condition::dim("W", Compare::not_equal, 5),
        Condition::dtype("weight", f32), !Condition::dtype("weight", f32), absent && wide,
        !absent && wide, absent || !wide}) {
    EXPECT_FALSE(holds(unknown)) << unknown.to_string();
    EXPECT_FALSE(holds(!unknown)) << unknown.to_string();
  }
  EXPECT_TRUE(holds(absent || wide));
  EXPECT_TRUE(holds(wide || absent));
  EXPECT_TRUE(holds(!(absent && !wide)));
  EXPECT_TRUE(holds(!(!wide && absent)));
}

Condition condition_of(std::string_view text) {
  const auto condition = Condition::parse(text);
  EXPECT_TRUE(condition) << condition.error().message();
  return condition.value();
}

TEST(Condition, a_text_can_ask_for_every_fact_of_a_call) {
  const NormCall call{.rows = 32,
                      .hidden = 4096,
                      .window = 128,
                      .dtype = bf16,
                      .weight = true,
                      .causal = true,
                      .ambient = schema::kGrad,
                      .tag = base::tag_number("layer.3")};
  for (const std::string_view text : {"H == 4096",
                                      "rows == 32",
                                      "rows * H == 131072",
                                      "W == H",
                                      "rank(x) == 2",
                                      "dtype(x) == \"bf16\"",
                                      "dtype(x) == dtype(weight)",
                                      "glob(dtype(x), \"*f16\")",
                                      "device(x) == \"cpu\"",
                                      "device(x) == device(weight)",
                                      "contiguous(x)",
                                      "aligned(x, 64)",
                                      "layout(x) == \"01\"",
                                      "has(weight)",
                                      "window > 100 && causal",
                                      "grad",
                                      "eps < 1e-5 && eps == 0.000001 && 1 > eps",
                                      "eps in [1.0, 1e-6]",
                                      "!training",
                                      "!capturing && !deterministic",
                                      "tag == \"layer.3\"",
                                      "glob(tag, \"layer.*\")",
                                      "tag in [\"layer.2\", \"layer.3\"]",
                                      "rows in [16, 32] ? H > 1 : H < 1",
                                      "!cpu(\"amx_fp16\") || cpu(\"amx_fp16\")"}) {
    EXPECT_TRUE(holds(condition_of(text), call)) << text;
    EXPECT_FALSE(holds(!condition_of(text), call)) << text;
  }
  EXPECT_FALSE(holds(condition_of("glob(tag, \"head.*\")"), call));
  EXPECT_FALSE(holds(condition_of("glob(dtype(x), \"i*\")"), call));
  EXPECT_FALSE(
      holds(condition_of("aligned(x, 64)"), {.data = reinterpret_cast<void*>(uintptr_t{4128})}));
}

TEST(Condition, asks_one_question_where_one_is_enough) {
  const auto op = norm_operator();
  schema::Dependencies dependencies;
  for (const std::string_view text : {"H > 64", "64 < H", "H % 16 == 0", "H in [64, 128]"}) {
    ConditionProgram::compile(condition_of(text), *op->schema)->add_dependencies(dependencies);
  }
  EXPECT_EQ(dependencies.questions().size(), 4u);
  EXPECT_TRUE(dependencies.formulas().empty());
  ConditionProgram::compile(condition_of("rows * H > 65536"), *op->schema)
      ->add_dependencies(dependencies);
  EXPECT_EQ(dependencies.formulas().size(), 1u);
  EXPECT_TRUE(dependencies.exact().empty());
}

TEST(Condition, does_not_apply_where_a_name_is_missing_even_in_one_branch) {
  EXPECT_TRUE(applies(Condition::dim("H", Compare::equal, 1)));
  EXPECT_FALSE(applies(Condition::dim("T", Compare::equal, 1)));
  EXPECT_FALSE(applies(Condition::dtype("q", f32)));
  EXPECT_FALSE(applies(Condition::scalar("H", Compare::equal, 1)));
  EXPECT_FALSE(applies(Condition::dim("H", Compare::equal, 1) || Condition::present("q")));
  EXPECT_FALSE(applies(!Condition::present("q")));
}

TEST(Condition, compares_a_float_argument_with_floats_and_integers) {
  EXPECT_TRUE(holds(Condition::real("eps", Compare::less, 1e-5)));
  EXPECT_TRUE(holds(Condition::real("eps", Compare::equal, 1e-6)));
  EXPECT_FALSE(holds(Condition::real("eps", Compare::not_equal, 1e-6)));
  EXPECT_FALSE(holds(Condition::scalar("eps", Compare::greater, 1e-6)));
  EXPECT_TRUE(holds(Condition::scalar("eps", Compare::greater, 0)));
  EXPECT_TRUE(holds(Condition::real("window", Compare::less, 128.5), {.window = 128}));
  EXPECT_FALSE(applies(Condition::real("causal", Compare::equal, 1.0)));
  EXPECT_FALSE(applies(Condition::scalar("eps", Compare::multiple_of, 2)));
  EXPECT_EQ(Condition::real("eps", Compare::less, 1e-5).to_string(), "eps < 1e-05");
}

TEST(Condition, a_nan_differs_from_every_float) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string_view text : {"eps == 1.0", "eps < 1.0", "eps >= 1.0", "eps <= eps"}) {
    EXPECT_FALSE(holds(condition_of(text), {.eps = nan})) << text;
  }
  EXPECT_TRUE(holds(condition_of("eps != 1.0"), {.eps = nan}));
  EXPECT_TRUE(holds(condition_of("!(eps < 1.0)"), {.eps = nan}));
}

TEST(Condition, zero_has_no_sign) {
  for (const double zero : {0.0, -0.0}) {
    EXPECT_TRUE(holds(condition_of("eps == 0.0 && eps == -0.0 && eps == 0"), {.eps = zero}));
    EXPECT_TRUE(holds(condition_of("eps < 0.5"), {.eps = zero}));
  }
}

TEST(Condition, a_float_is_not_rounded_to_an_integer_nor_an_integer_to_a_float) {
  EXPECT_TRUE(holds(condition_of("H > 4095.5 && H < 4096.5"), {.hidden = 4096}));
  EXPECT_FALSE(holds(condition_of("eps < 1"), {.eps = 1.25}));
  EXPECT_FALSE(holds(condition_of("H == 9007199254740992.0"), {.hidden = 9007199254740993}));
}

TEST(Condition, refuses_a_float_that_is_not_finite_and_its_multiples) {
  EXPECT_EQ(condition_problem(Condition::real("eps", Compare::less, 1e-5)), "");
  EXPECT_NE(condition_problem(
                Condition::real("eps", Compare::less, std::numeric_limits<double>::infinity())),
            "");
  EXPECT_NE(condition_problem(Condition::real("eps", Compare::multiple_of, 2.0)), "");
}

TEST(Condition, prints_each_question_as_it_is_written) {
  EXPECT_EQ(Condition::dim("T", Compare::greater, 8192).to_string(), "T > 8192");
  EXPECT_EQ(Condition::dim("H", Compare::multiple_of, 16).to_string(), "H % 16 == 0");
  EXPECT_EQ(Condition::rows(Compare::less_equal, 4).to_string(), "rows <= 4");
  EXPECT_EQ(Condition::dtype("q", bf16).to_string(), "dtype(q) == \"bf16\"");
  EXPECT_EQ(Condition::rank("q", Compare::not_equal, 4).to_string(), "rank(q) != 4");
  EXPECT_EQ(Condition::device("q", OPMUX_DEVICE_CPU).to_string(), "device(q) == \"cpu\"");
  EXPECT_EQ(Condition::present("w").to_string(), "has(w)");
  EXPECT_EQ(Condition::contiguous("x").to_string(), "contiguous(x)");
  EXPECT_EQ(Condition::aligned("x", 64).to_string(), "aligned(x, 64)");
  EXPECT_EQ(Condition::layout("q", "0213").to_string(), "layout(q) == \"0213\"");
  EXPECT_EQ(Condition::ambient("grad").to_string(), "grad");
  EXPECT_EQ(Condition::tag(5).to_string(), "tag == 5");
}

TEST(Condition, prints_trees_with_one_spelling) {
  const Condition a = Condition::ambient("grad"), b = Condition::tag(1),
                  c = Condition::present("w");
  EXPECT_EQ((a && b && c).to_string(), "(grad && tag == 1 && has(w))");
  EXPECT_EQ((a && (b && c)).to_string(), ((a && b) && c).to_string());
  EXPECT_EQ((a && (b || c)).to_string(), "(grad && (tag == 1 || has(w)))");
  EXPECT_EQ((!b).to_string(), "!(tag == 1)");
  EXPECT_EQ((!(a || b)).to_string(), "!(grad || tag == 1)");
}

}  // namespace
}  // namespace opmux::policy
