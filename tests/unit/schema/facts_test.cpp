#include "schema/dependencies.hpp"

#include <array>
#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace opmux::schema {
namespace {

using testing::ElementsAre;

const Schema& schema() {
  static const Schema parsed =
      parse_schema(
          "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], float eps = 1e-6, "
          "int n = 0, str s = \"a\")")
          .value();
  return parsed;
}

TEST(Facts, are_resolved_by_what_the_schema_has) {
  EXPECT_EQ(resolve_fact(schema(), FactKind::dtype, "x"), (Fact{FactKind::dtype, 1}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::dim, "H"), (Fact{FactKind::dim, 0}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::dim, "rows"), (Fact{FactKind::dim, kRowsDim}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::scalar, "eps"), (Fact{FactKind::scalar, 3}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::present, "w"), (Fact{FactKind::present, 2}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::ambient, "deterministic"),
            (Fact{FactKind::ambient, 2}));
  EXPECT_EQ(resolve_fact(schema(), FactKind::tag, ""), (Fact{FactKind::tag, 0}));
}

TEST(Facts, that_do_not_fit_their_argument_are_none) {
  EXPECT_FALSE(resolve_fact(schema(), FactKind::dtype, "eps"));
  EXPECT_FALSE(resolve_fact(schema(), FactKind::scalar, "x"));
  EXPECT_FALSE(resolve_fact(schema(), FactKind::scalar, "s")) << "a string cannot be read";
  EXPECT_FALSE(resolve_fact(schema(), FactKind::dim, "K"));
  EXPECT_FALSE(resolve_fact(schema(), FactKind::ambient, "weather"));
  EXPECT_FALSE(resolve_fact(parse_schema("f(out Tensor y[N])").value(), FactKind::dim, "rows"));
}

TEST(Facts, are_described_as_explain_prints_them) {
  EXPECT_EQ(describe(schema(), {FactKind::dtype, 1}), "dtype(x)");
  EXPECT_EQ(describe(schema(), {FactKind::dim, 0}), "H");
  EXPECT_EQ(describe(schema(), {FactKind::dim, kRowsDim}), "rows");
  EXPECT_EQ(describe(schema(), {FactKind::scalar, 3}), "eps");
  EXPECT_EQ(describe(schema(), {FactKind::present, 2}), "has(w)");
  EXPECT_EQ(describe(schema(), {FactKind::ambient, 0}), "grad");
}

TEST(Facts, have_the_values_of_the_call) {
  alignas(64) std::array<char, 128> memory{};
  const TensorView x(memory.data() + 32, bf16, {2, 3, 8}, Device{OPMUX_DEVICE_CUDA, 2}), none;
  Arguments arguments;
  arguments.count = 6;
  arguments.tags = {ArgTag::tensor,   ArgTag::tensor,  ArgTag::tensor,
                    ArgTag::floating, ArgTag::integer, ArgTag::string};
  arguments.values[0].tensor = arguments.values[1].tensor = &x;
  arguments.values[2].tensor = &none;
  arguments.values[3].f64 = 0.5;
  arguments.values[4].i64 = 9;
  BoundDims dims{};
  dims.values.fill(-1);
  dims.values[0] = 8;
  dims.leading_rank = 2;
  dims.rows = 6;
  const Signature call{&schema(), &arguments, &dims, kCapturing, 77};
  EXPECT_EQ(value_of(call, {FactKind::dtype, 1}), bf16.packed());
  EXPECT_EQ(value_of(call, {FactKind::rank, 1}), 3);
  EXPECT_EQ(value_of(call, {FactKind::contiguous, 1}), 1);
  EXPECT_EQ(value_of(call, {FactKind::alignment, 1}), 32);
  EXPECT_EQ(value_of(call, {FactKind::layout, 1}), 0x210);
  EXPECT_EQ(value_of(call, {FactKind::device, 1}), OPMUX_DEVICE_CUDA | 2 << 16);
  EXPECT_EQ(value_of(call, {FactKind::dtype, 2}), kAbsent);
  EXPECT_EQ(value_of(call, {FactKind::present, 1}), 1);
  EXPECT_EQ(value_of(call, {FactKind::present, 2}), 0);
  EXPECT_EQ(value_of(call, {FactKind::dim, 0}), 8);
  EXPECT_EQ(value_of(call, {FactKind::dim, 1}), kAbsent);
  EXPECT_EQ(value_of(call, {FactKind::dim, kRowsDim}), 6);
  EXPECT_EQ(value_of(call, {FactKind::scalar, 3}), std::bit_cast<int64_t>(0.5));
  EXPECT_EQ(value_of(call, {FactKind::scalar, 4}), 9);
  EXPECT_EQ(value_of(call, {FactKind::scalar, 5}), kAbsent);
  EXPECT_EQ(value_of(call, {FactKind::ambient, 1}), 1);
  EXPECT_EQ(value_of(call, {FactKind::ambient, 0}), 0);
  EXPECT_EQ(value_of(call, {FactKind::tag, 0}), 77);
}

TEST(Facts, layout_is_the_order_of_dimensions_by_falling_stride) {
  const std::array<int64_t, 4> shape{2, 3, 4, 5}, strides{60, 5, 15, 1};
  EXPECT_EQ(layout_of(TensorView(nullptr, f32, shape, strides)), 0x3120);
}

TEST(Facts, a_question_about_an_absent_fact_is_answered_no) {
  const Predicate at_most{{FactKind::dim, 0}, Relation::at_most, 8};
  EXPECT_TRUE(holds(at_most, 8));
  EXPECT_FALSE(holds(at_most, 9));
  EXPECT_FALSE(holds(at_most, kAbsent));
  EXPECT_FALSE(holds({{FactKind::dim, 0}, Relation::multiple_of, 0}, 8));
}

TEST(Dependencies, are_kept_once_and_in_order) {
  Dependencies all, more;
  const Predicate multiple{{FactKind::dim, 0}, Relation::multiple_of, 16};
  all.add(Fact{FactKind::dtype, 1});
  all.add(multiple);
  more.add(multiple);
  more.add(Fact{FactKind::dtype, 0});
  more.add(Predicate{{FactKind::rank, 1}, Relation::at_least, 2});
  all.add(more);
  EXPECT_THAT(all.exact(), ElementsAre(Fact{FactKind::dtype, 0}, Fact{FactKind::dtype, 1},
                                       Fact{FactKind::rank, 1}));
  EXPECT_THAT(all.questions(), ElementsAre(multiple));
  EXPECT_EQ(all.facts().size(), 4u);
}

}  // namespace
}  // namespace opmux::schema
