#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace opmux::schema {
namespace {

using Shape = std::vector<int64_t>;

Result<std::vector<InferredTensor>> infer(std::string_view text, const ArgumentList& list) {
  const Schema schema = schema_of(text);
  Arguments arguments;
  if (Status status = list.normalise(schema, arguments); !status.ok()) return status;
  return infer_outputs(schema, arguments);
}

Shape first_shape(std::string_view text, const ArgumentList& list) {
  const auto outputs = infer(text, list);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().to_string();
  return outputs && !outputs->empty() ? outputs->front().shape : Shape{-1};
}

void expect_inference_refuses(std::string_view text, const ArgumentList& list,
                              std::string_view reason, std::string_view message) {
  const auto outputs = infer(text, list);
  ASSERT_FALSE(outputs.has_value());
  EXPECT_EQ(outputs.error().reason(), reason);
  EXPECT_EQ(outputs.error().message(), message);
}

TEST(InferOutputs, copies_names_and_leading_dimensions) {
  const auto outputs = infer("f(out Tensor y[..., H, 3], Tensor x[..., H], Tensor? w[H])",
                             ArgumentList().none().tensor(bf16, {2, 5, 8}));
  ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].arg, 0);
  EXPECT_EQ((*outputs)[0].dtype, bf16);
  EXPECT_EQ((*outputs)[0].shape, (Shape{2, 5, 8, 3}));
}

TEST(InferOutputs, solves_a_condition_for_a_dimension_of_outputs) {
  EXPECT_EQ(first_shape("f(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
                        ArgumentList().none().f32({3, 8})),
            (Shape{3, 4}));
  EXPECT_EQ(
      first_shape("f(out Tensor y[N], Tensor x[A, B], int pad = 1) where N - pad == A * B + 1",
                  ArgumentList().none().f32({3, 4})),
      (Shape{14}));
  EXPECT_EQ(first_shape("f(out Tensor y[N, M], Tensor x[A]) where M == N + 1 && A / 2 == N",
                        ArgumentList().none().f32({9})),
            (Shape{4, 5}));
}

TEST(InferOutputs, passed_outputs_determine_dimensions_of_the_others) {
  const std::string_view text = "f(out Tensor y[..., K], out Tensor z[..., K], Tensor x[..., E])";
  const auto outputs = infer(text, ArgumentList().f32({3, 2}).none().f32({3, 8}));
  ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[1].shape, (Shape{3, 2}));
  EXPECT_FALSE(infer(text, ArgumentList().none().none().f32({3, 8})).has_value());
}

TEST(InferOutputs, refuses_a_condition_without_whole_solution) {
  expect_inference_refuses(
      "f(out Tensor y[H], Tensor x[H2]) where H2 == 2 * H", ArgumentList().none().f32({7}),
      "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine dimension H (H2 == 2 * H)");
  expect_inference_refuses(
      "f(out Tensor y[H], Tensor x[N]) where N == H + 5", ArgumentList().none().f32({3}),
      "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine dimension H (N == H + 5)");
  expect_inference_refuses(
      "f(out Tensor y[H], Tensor x[N]) where H * H == N", ArgumentList().none().f32({9}),
      "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine dimension H (H * H == N)");
}

TEST(InferOutputs, names_dimensions_that_cannot_be_inferred) {
  expect_inference_refuses("f(out Tensor y[K], Tensor x[N])", ArgumentList().none().f32({3}),
                           "schema.not_inferable",
                           "f: cannot infer 'y': the inputs do not determine dimension K");
  expect_inference_refuses(
      "f(out Tensor y[..., N], Tensor x[N])", ArgumentList().none().f32({3}),
      "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine the leading dimensions '...'");
  expect_inference_refuses(
      "f(out Tensor y[*], Tensor x[*])", ArgumentList().none().f32({3}), "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine its shape, which the schema leaves open");
  expect_inference_refuses(
      "f(out Tensor[] y, Tensor x[*])", ArgumentList().tensors({}).f32({3}), "schema.not_inferable",
      "f: cannot infer 'y': the inputs do not determine the length of the list");
  expect_inference_refuses("f(out Tensor y[4], int n)", ArgumentList().none().integer(3),
                           "schema.not_inferable",
                           "f: cannot infer 'y': the inputs do not determine its dtype, because "
                           "there is no input tensor");
}

TEST(InferOutputs, takes_the_shape_of_what_an_output_may_alias) {
  EXPECT_EQ(first_shape("f(out(x) Tensor y, Tensor x)", ArgumentList().none().f32({2, 3})),
            (Shape{2, 3}));
}

TEST(InferOutputs, takes_a_dtype_from_its_tie) {
  const auto outputs = infer("f(out Tensor(E) y[N], out Tensor z[N], Tensor i[N], Tensor(E) x[N])",
                             ArgumentList().none().none().tensor(i32, {4}).tensor(f16, {4}));
  ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].dtype, f16);
  EXPECT_EQ((*outputs)[1].dtype, i32);
}

TEST(InferOutputs, ignores_the_outputs_that_were_given) {
  EXPECT_EQ(first_shape("f(out Tensor y[N], Tensor x[N])", ArgumentList().f32({99}).f32({4})),
            Shape{4});
}

TEST(InferOutputs, leaves_out_optional_outputs_that_nothing_tells) {
  const auto outputs = infer("f(out Tensor y[N], out Tensor? z[K], Tensor x[N])",
                             ArgumentList().none().none().f32({4}));
  ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
  EXPECT_EQ(outputs->size(), 1u);
}

TEST(InferOutputs, checks_the_inputs_it_reads) {
  expect_inference_refuses("f(out Tensor y[N], Tensor a[N], Tensor b[N])",
                           ArgumentList().none().f32({3}).f32({4}), "schema.dim_mismatch",
                           "f: N is 3 in a but 4 in b");
  expect_inference_refuses("f(out Tensor y[N], Tensor x[N]) where N > 5",
                           ArgumentList().none().f32({3}), "schema.where",
                           "f: N > 5 does not hold: N is 3");
}

}  // namespace
}  // namespace opmux::schema
