
#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace opmux::schema {
namespace {

Status check(std::string_view schema_text, const ArgumentList& list, BoundDims& dims) {
  const Schema schema = schema_of(schema_text);
  Arguments arguments;
  if (Status status = list.normalise(schema, arguments); !status.ok()) return status;
  return check_arguments(schema, arguments, dims);
}

void expect_check_refuses(std::string_view schema, const ArgumentList& list,
                          std::string_view reason, std::string_view message) {
  BoundDims dims;
  const Status status = check(schema, list, dims);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), reason);
  EXPECT_EQ(status.message(), message);
}

void expect_ok(std::string_view schema, const ArgumentList& list) {
  BoundDims dims;
  const Status status = check(schema, list, dims);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(CheckArguments, gives_dimensions_to_names) {
  BoundDims dims;
  ASSERT_TRUE(check(kRmsNorm, ArgumentList().f32({2, 3, 8}).f32({2, 3, 8}).f32({8}), dims).ok());
  EXPECT_EQ(dims.values[0], 8);
  EXPECT_EQ(dims.leading_rank, 2);
  EXPECT_EQ(dims.leading[1], 3);
  EXPECT_EQ(dims.rows, 6);
}

TEST(CheckArguments, leaves_dimensions_of_absent_tensors_unbound) {
  BoundDims dims;
  ASSERT_TRUE(check("f(Tensor x[A], Tensor? w[B])", ArgumentList().f32({4}), dims).ok());
  EXPECT_EQ(dims.values[0], 4);
  EXPECT_EQ(dims.values[1], -1);
  EXPECT_EQ(dims.leading_rank, -1);
  EXPECT_EQ(dims.rows, 1);
}

TEST(CheckArguments, names_both_arguments_and_both_numbers) {
  expect_check_refuses(kRmsNorm, ArgumentList().f32({2, 4096}).f32({2, 4096}).f32({4095}),
                       "schema.dim_mismatch", "rms_norm: H is 4096 in x but 4095 in weight");
}

TEST(CheckArguments, believes_inputs_rather_than_outputs) {
  expect_check_refuses(kRmsNorm, ArgumentList().f32({2, 4095}).f32({2, 4096}),
                       "schema.dim_mismatch", "rms_norm: H is 4096 in x but 4095 in y");
}

TEST(CheckArguments, compares_a_name_within_one_tensor) {
  expect_check_refuses("f(Tensor x[N, N])", ArgumentList().f32({3, 4}), "schema.dim_mismatch",
                       "f: N is 3 in x but 4 in x");
}

TEST(CheckArguments, compares_leading_dimensions) {
  expect_check_refuses(kRmsNorm, ArgumentList().f32({2, 3, 8}).f32({2, 4, 8}),
                       "schema.leading_mismatch", "rms_norm: '...' is [2, 4] in x but [2, 3] in y");
  expect_check_refuses(kRmsNorm, ArgumentList().f32({6, 8}).f32({2, 3, 8}),
                       "schema.leading_mismatch", "rms_norm: '...' is [2, 3] in x but [6] in y");
}

TEST(CheckArguments, compares_numbers) {
  expect_ok("f(Tensor x[N, 4])", ArgumentList().f32({2, 4}));
  expect_check_refuses("f(Tensor x[N, 4])", ArgumentList().f32({2, 5}), "schema.dim_mismatch",
                       "f: dimension -1 of 'x' must be 4, is 5");
}

TEST(CheckArguments, compares_ranks) {
  expect_check_refuses("f(Tensor x[A, B])", ArgumentList().f32({2}), "schema.rank",
                       "f: 'Tensor x[A, B]' has 2 dimensions, [2] has 1");
  expect_check_refuses("f(Tensor x[A])", ArgumentList().f32({2, 3}), "schema.rank",
                       "f: 'Tensor x[A]' has 1 dimension, [2, 3] has 2");
  expect_check_refuses("f(Tensor x[..., A, B])", ArgumentList().f32({2}), "schema.rank",
                       "f: 'Tensor x[..., A, B]' has at least 2 dimensions, [2] has 1");
  expect_check_refuses("f(Tensor x[])", ArgumentList().f32({1}), "schema.rank",
                       "f: 'Tensor x[]' has 0 dimensions, [1] has 1");
}

TEST(CheckArguments, takes_rank_zero_and_zero_sizes) {
  expect_ok("f(Tensor x[])", ArgumentList().f32({}));
  expect_ok("f(Tensor x[*])", ArgumentList().f32({}));
  BoundDims dims;
  ASSERT_TRUE(check(kRmsNorm, ArgumentList().f32({0, 8}).f32({0, 8}), dims).ok());
  EXPECT_EQ(dims.rows, 0);
  ASSERT_TRUE(check(kRmsNorm, ArgumentList().f32({8}).f32({8}), dims).ok());
  EXPECT_EQ(dims.leading_rank, 0);
  EXPECT_EQ(dims.rows, 1);
}

TEST(CheckArguments, refuses_what_no_view_can_hold) {
  const std::vector<int64_t> nine(9, 1);
  expect_check_refuses("f(Tensor x)", ArgumentList().tensor(TensorView{nullptr, f32, nine, {}}),
                       "schema.rank",
                       "f: 'x' has more than 8 dimensions, or its strides do not match its rank");
}

TEST(CheckArguments, refuses_negative_dimensions) {
  expect_check_refuses("f(Tensor x)", ArgumentList().f32({2, -3}), "schema.dim_negative",
                       "f: dimension 1 of 'x' is -3");
}

TEST(CheckArguments, refuses_sizes_beyond_63_bits_in_bytes) {
  constexpr int64_t kBig = int64_t{1} << 31;
  expect_check_refuses(
      "f(Tensor x)", ArgumentList().f32({kBig, kBig}), "schema.size_overflow",
      "f: the size of 'x' [2147483648, 2147483648] of f32 does not fit in 63 bits");
  expect_ok("f(Tensor x)", ArgumentList().tensor(u8, {kBig, kBig}));
  expect_check_refuses(
      "f(Tensor x)", ArgumentList().f32({INT64_MAX, INT64_MAX, 0}), "schema.size_overflow",
      "f: the size of 'x' [9223372036854775807, 9223372036854775807, 0] of f32 does not "
      "fit in 63 bits");
}

TEST(CheckArguments, ties_dtypes) {
  constexpr std::string_view kTied = "f(out Tensor(E) y, Tensor(E) x, Tensor(E)[] more)";
  const TensorView single{static_cast<void*>(nullptr), f32, {1}};
  const TensorView half{static_cast<void*>(nullptr), bf16, {1}};
  expect_ok(kTied, ArgumentList().f32({1}).f32({1}).tensors({single}));
  expect_check_refuses(kTied, ArgumentList().f32({1}).tensor(bf16, {1}).tensors({}),
                       "schema.dtype_tie", "f: dtype E is bf16 in x but f32 in y");
  expect_check_refuses(kTied, ArgumentList().f32({1}).f32({1}).tensors({single, half}),
                       "schema.dtype_tie", "f: dtype E is f32 in x but bf16 in more");
}

TEST(CheckArguments, checks_the_tensors_of_a_list) {
  const TensorView bad{static_cast<void*>(nullptr), f32, {-1}};
  expect_check_refuses("f(Tensor[] xs)", ArgumentList().tensors({bad}), "schema.dim_negative",
                       "f: dimension 0 of 'xs' is -1");
  expect_check_refuses("f(Tensor[] xs)", ArgumentList().tensors({TensorView()}),
                       "schema.argument_missing", "f: argument 1 'Tensor[] xs' is missing");
}

TEST(CheckArguments, wants_required_tensors_present) {
  expect_check_refuses(kRmsNorm, ArgumentList().tensor(TensorView()).f32({2, 8}),
                       "schema.argument_missing",
                       "rms_norm: argument 1 'out Tensor y[..., H]' is missing");
  expect_check_refuses(kRmsNorm, ArgumentList().f32({2, 8}).none(), "schema.argument_missing",
                       "rms_norm: argument 2 'Tensor x[..., H]' is missing");
}

TEST(CheckArguments, asks_where) {
  constexpr std::string_view kGelu =
      "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H";
  expect_ok(kGelu, ArgumentList().f32({3, 4}).f32({3, 8}));
  expect_check_refuses(kGelu, ArgumentList().f32({3, 4}).f32({3, 7}), "schema.where",
                       "gelu_and_mul: H2 == 2 * H does not hold: H2 is 7, H is 4");
  expect_check_refuses("f(Tensor x[H], enum{p, q} m, bool b, int n) where m == q || b || n > H",
                       ArgumentList().f32({5}).text("p").integer(0, ArgTag::logical).integer(5),
                       "schema.where",
                       "f: m == q || b || n > H does not hold: m is p, b is false, n is 5, H is 5");
}

TEST(CheckArguments, does_not_ask_where_about_what_is_absent) {
  constexpr std::string_view kSchema =
      "f(Tensor x[A], Tensor? w[B], int? n) where A % B == 0 && n > 3 && A > 1";
  expect_ok(kSchema, ArgumentList().f32({4}));
  expect_check_refuses(kSchema, ArgumentList().f32({1}), "schema.where",
                       "f: A > 1 does not hold: A is 1");
  expect_check_refuses(kSchema, ArgumentList().f32({4}).f32({3}), "schema.where",
                       "f: A % B == 0 does not hold: A is 4, B is 3");
  expect_check_refuses(kSchema, ArgumentList().f32({4}).none().integer(2), "schema.where",
                       "f: n > 3 does not hold: n is 2");
}

TEST(CheckArguments, carries_twenty_four_tensors_of_eight_dimensions) {
  std::string text = "f(";
  ArgumentList list;
  for (int arg = 0; arg < 24; ++arg) {
    text += (arg ? ", Tensor a" : "Tensor a") + std::to_string(arg) + "[A, B, C, D, E, F, G, H]";
    list.f32({1, 2, 3, 4, 5, 6, 7, 8});
  }
  BoundDims dims;
  ASSERT_TRUE(check(text + ")", list, dims).ok());
  EXPECT_EQ(dims.values[7], 8);
}

TEST(ResolveDimChecks, lists_what_must_be_equal_at_these_ranks) {
  const Schema schema = schema_of("f(out Tensor y[..., H], Tensor x[..., H, 4], Tensor? w[H, W])");
  ArgumentList list;
  list.f32({2, 3, 8}).f32({2, 3, 8, 4});
  Arguments arguments;
  ASSERT_TRUE(list.normalise(schema, arguments).ok());
  const DimChecks checks = resolve_dim_checks(schema, arguments);
  ASSERT_EQ(checks.equalities.size(), 3u);
  const DimEquality last = checks.equalities[2];
  EXPECT_EQ(last.arg_a, 0);
  EXPECT_EQ(last.dim_a, 2);
  EXPECT_EQ(last.arg_b, 1);
  EXPECT_EQ(last.dim_b, 2);
  ASSERT_EQ(checks.constants.size(), 1u);
  EXPECT_EQ(checks.constants[0].dim, 3);
  EXPECT_EQ(checks.constants[0].value, 4);
  EXPECT_EQ(checks.source_arg[0], 0);
  EXPECT_EQ(checks.source_dim[0], 2);
  EXPECT_EQ(checks.source_arg[1], 255);
}

}  // namespace
}  // namespace opmux::schema
