#include "expected_matmul.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

CallResult multiply(const Tensor& y, const Tensor& a, const Tensor& b) {
  return call(reference("matmul"), {arg(y), arg(a), arg(b)});
}
CallResult apply_linear(const Tensor& y, const Tensor& x, const Tensor& weight,
                        const Tensor* bias = nullptr) {
  return call(reference("linear"), {arg(y), arg(x), arg(weight), arg(bias)});
}

TEST(ReferenceMatmul, is_right_for_every_type_shape_and_stride) {
  struct Shape {
    std::vector<int64_t> leading;
    int64_t m, n, k;
  };
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const Shape& shape : {Shape{{}, 1, 1, 1}, Shape{{}, 3, 65, 33}, Shape{{2, 3}, 5, 7, 9},
                                 Shape{{2}, 1, 130, 257}, Shape{{0}, 2, 3, 4}}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " K=" + std::to_string(shape.k));
        const auto dims = [&](int64_t rows, int64_t columns) {
          std::vector<int64_t> all = shape.leading;
          all.insert(all.end(), {rows, columns});
          return all;
        };
        const Tensor a = random(dtype, dims(shape.m, shape.k), layout);
        const Tensor b = random(dtype, dims(shape.k, shape.n), layout, 2);
        Tensor y = make(dtype, dims(shape.m, shape.n), layout);
        const auto r = multiply(y, a, b);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_matmul(a, b));
      }
    }
  }
}

TEST(ReferenceMatmul, a_transposed_or_repeated_matrix_is_a_matter_of_strides) {
  const Tensor a = random(kF32, {2, 4, 6});
  const Tensor transposed(kF32, {2, 6, 5}, {30, 1, 6});
  Tensor b = transposed, y = make(kF32, {2, 4, 5});
  std::mt19937 engine(3);
  b.fill([&](int64_t) { return double(engine() % 16); });
  ASSERT_EQ(multiply(y, a, b).outcome, OPMUX_OK);
  expect_close(y, expected_matmul(a, b));

  Tensor shared(kF32, {2, 6, 5}, {0, 5, 1});
  shared.fill([](int64_t i) { return double(i % 30); });
  ASSERT_EQ(multiply(y, a, shared).outcome, OPMUX_OK);
  expect_close(y, expected_matmul(a, shared));
}

TEST(ReferenceMatmul, a_sum_without_terms_is_zero) {
  const Tensor a = make(kF16, {3, 0}), b = make(kF16, {0, 2});
  Tensor y = random(kF16, {3, 2});
  ASSERT_EQ(multiply(y, a, b).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), 0u);
}

TEST(ReferenceMatmul, nan_and_infinity_reach_their_row_and_column_only) {
  Tensor a = random(kF32, {3, 4}), b = random(kF32, {4, 3}), y = make(kF32, {3, 3});
  a.set(4, NAN);
  b.set(2, HUGE_VAL);
  a.set(0, 0);
  ASSERT_EQ(multiply(y, a, b).outcome, OPMUX_OK);
  for (int64_t i : {2, 3, 4, 5}) EXPECT_TRUE(std::isnan(y.get(i))) << i;
  for (int64_t i : {0, 1, 6, 7}) EXPECT_TRUE(std::isfinite(y.get(i))) << i;
  EXPECT_TRUE(std::isinf(y.get(8)));
}

TEST(ReferenceMatmul, types_may_be_mixed_and_too_large_for_f16_is_infinity) {
  Tensor a = make(kBF16, {1, 2}), b = make(kF32, {2, 1}), y = make(kF16, {1, 1});
  a.fill([](int64_t) { return 256; });
  b.fill([](int64_t) { return 128; });
  ASSERT_EQ(multiply(y, a, b).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), HUGE_VAL);
}

TEST(ReferenceMatmul, a_row_has_the_same_bits_in_any_batch) {
  const Tensor many = random(kF32, {7, 257}), b = random(kF32, {257, 70}, Layout::contiguous, 2);
  Tensor one = make(kF32, {1, 257}), y_many = make(kF32, {7, 70}), y_one = make(kF32, {1, 70});
  one.fill([&](int64_t i) { return many.get(5 * 257 + i); });
  multiply(y_many, many, b);
  multiply(y_one, one, b);
  for (int64_t i = 0; i < 70; ++i) ASSERT_EQ(y_one.bits(i), y_many.bits(5 * 70 + i));
}

TEST(ReferenceLinear, is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (auto shape : kShapes) {
        if (shape.back() > 300) shape.back() = 300;
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " K=" + std::to_string(shape.back()));
        const Tensor x = random(dtype, shape, layout);
        const Tensor weight = random(dtype, {67, shape.back()}, layout, 2);
        const Tensor bias = random(kF32, {67}, layout, 3);
        shape.back() = 67;
        for (const Tensor* given : {&bias, static_cast<const Tensor*>(nullptr)}) {
          Tensor y = make(dtype, shape, layout);
          const auto r = apply_linear(y, x, weight, given);
          ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
          expect_close(y, expected_linear(x, weight, given));
        }
      }
    }
  }
}

TEST(ReferenceLinear, no_inputs_leave_the_bias_and_no_bias_leaves_zero) {
  const Tensor x = make(kF32, {2, 0}), weight = make(kF32, {3, 0}), bias = random(kF32, {3});
  Tensor y = random(kF32, {2, 3});
  ASSERT_EQ(apply_linear(y, x, weight, &bias).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), bias.bits(i % 3));
  ASSERT_EQ(apply_linear(y, x, weight).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), 0u);
}

TEST(ReferenceLinear, bias_is_added_before_the_one_rounding) {
  // 256 + 1 is not representable in bf16, 256 + 1 + 1 is.
  Tensor x = make(kBF16, {1, 2}), weight = make(kBF16, {1, 2}), bias = make(kBF16, {1}), y = bias;
  x.fill([](int64_t i) { return i == 0 ? 256 : 1; });
  weight.fill([](int64_t) { return 1; });
  bias.set(0, 1);
  ASSERT_EQ(apply_linear(y, x, weight, &bias).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), 258);
}

}  // namespace
}  // namespace opmux::testing
