#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

std::vector<Expected> expected_layer_norm(const Tensor& x, const Tensor* weight, const Tensor* bias,
                                          double eps) {
  std::vector<Expected> result;
  for (const std::vector<double>& row : rows_of(x)) {
    const double size = double(row.size());
    double mean = 0, variance = 0, largest = 0;
    for (double v : row) mean += v / size;
    for (double v : row) variance += std::pow(v - mean, 2) / size;
    for (double v : row) largest = std::max(largest, std::fabs(v));
    const double relative = pairwise_error(x.dim(-1)) + 8 * kEps;
    for (size_t i = 0; i < row.size(); ++i) {
      const double scale = weight_at(weight, int64_t(i)) / std::sqrt(variance + eps);
      const double added = bias ? bias->get(int64_t(i)) : 0;
      const double error = relative * (4 * largest * std::fabs(scale) + std::fabs(added));
      result.push_back({(row[i] - mean) * scale + added, error});
    }
  }
  return result;
}

TEST(ReferenceRmsNorm, is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        const Tensor x = random(dtype, shape, layout);
        const Tensor weight = random(dtype, {shape.back()}, layout, 2);
        Tensor y = make(dtype, shape, layout);
        const auto r = call(reference("rms_norm"), {arg(y), arg(x), arg(weight), arg(1e-6)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_rms_norm(x, &weight, 1e-6, pairwise_error(shape.back())));
      }
    }
  }
}

TEST(ReferenceRmsNorm, weight_may_have_another_type_or_be_absent) {
  const Tensor x = random(kBF16, {3, 65});
  const Tensor weight = random(kF32, {65}, Layout::strided_elements, 2);
  for (const Tensor* given : {&weight, static_cast<const Tensor*>(nullptr)}) {
    Tensor y = make(kF16, {3, 65});
    ASSERT_EQ(call(reference("rms_norm"), {arg(y), arg(x), arg(given), arg(0.5)}).outcome,
              OPMUX_OK);
    expect_close(y, expected_rms_norm(x, given, 0.5, pairwise_error(65)));
  }
}

// The normalized values in f32, rounded to `between`, multiplied by the weight, rounded to the
// output.
void expect_rounded_between(const Tensor& y, const Tensor& x, const Tensor* weight,
                            opmux_dtype between) {
  Tensor normal = make(kF32, {x.dim(0), x.dim(1)});
  ASSERT_EQ(call(reference("rms_norm"), {arg(normal), arg(x), absent(), arg(1e-6)}).outcome,
            OPMUX_OK);
  const Format narrow = Format::of(between), out = Format::of(y.dtype());
  for (int64_t i = 0; i < y.elements(); ++i) {
    const double rounded = narrow.decode(narrow.encode(normal.get(i)));
    // A product of two values of at most 16 bits is exact in f32.
    ASSERT_EQ(y.bits(i), out.encode(rounded * weight_at(weight, i % x.dim(1)))) << i;
  }
}

TEST(ReferenceRmsNorm, rounds_before_the_weight_on_request) {
  const Tensor x = random(kBF16, {3, 200}), in_f32 = random(kF32, {3, 200});
  const Tensor weight = random(kBF16, {200}, Layout::contiguous, 2);
  const Tensor half = random(kF16, {200}, Layout::contiguous, 2);
  for (const Tensor* from : {&x, &in_f32}) {
    for (const Tensor* given : {&weight, &half}) {
      Tensor y = make(kBF16, {3, 200}), plain = y;
      ASSERT_EQ(
          call(reference("rms_norm"), {arg(y), arg(from), arg(given), arg(1e-6), bool_arg(true)})
              .outcome,
          OPMUX_OK);
      expect_rounded_between(y, *from, given, given->dtype());
      call(reference("rms_norm"), {arg(plain), arg(from), arg(given), arg(1e-6), bool_arg(false)});
      EXPECT_NE(y.bytes(), plain.bytes());
    }
  }
}

TEST(ReferenceRmsNorm, rounds_to_the_type_of_x_if_there_is_no_weight) {
  const Tensor x = random(kBF16, {3, 200});
  Tensor y = make(kF32, {3, 200});
  ASSERT_EQ(
      call(reference("rms_norm"), {arg(y), arg(x), absent(), arg(1e-6), bool_arg(true)}).outcome,
      OPMUX_OK);
  expect_rounded_between(y, x, nullptr, kBF16);
}

TEST(ReferenceFusedAddRmsNorm, rounds_before_the_weight_on_request) {
  Tensor x = random(kBF16, {3, 200}), residual = random(kBF16, {3, 200}, Layout::contiguous, 7);
  const Tensor weight = random(kBF16, {200}, Layout::contiguous, 2);
  ASSERT_EQ(call(reference("fused_add_rms_norm"),
                 {arg(x), arg(residual), arg(weight), arg(1e-6), bool_arg(true)})
                .outcome,
            OPMUX_OK);
  expect_rounded_between(x, residual, &weight, kBF16);
}

TEST(ReferenceRmsNorm, may_write_over_its_input) {
  Tensor x = random(kF32, {4, 33});
  const auto expected = expected_rms_norm(x, nullptr, 1e-6, pairwise_error(33));
  ASSERT_EQ(call(reference("rms_norm"), {arg(x), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_OK);
  expect_close(x, expected);
}

TEST(ReferenceRmsNorm, nan_stays_in_its_row) {
  Tensor x = random(kF32, {3, 9});
  x.set(9 + 4, NAN);
  Tensor y = make(kF32, {3, 9});
  ASSERT_EQ(call(reference("rms_norm"), {arg(y), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_OK);
  expect_close(y, expected_rms_norm(x, nullptr, 1e-6, pairwise_error(9)));
  EXPECT_TRUE(std::isnan(y.get(9)));
  EXPECT_FALSE(std::isnan(y.get(0)) || std::isnan(y.get(18)));
}

TEST(ReferenceRmsNorm, zeros_need_an_eps_and_infinity_takes_the_rest_of_its_row) {
  Tensor x = make(kF32, {2, 3}).fill([](int64_t i) { return i < 3 ? 0 : i; }), y = x;
  x.set(4, HUGE_VAL);
  ASSERT_EQ(call(reference("rms_norm"), {arg(y), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_OK);
  for (int64_t i : {0, 1, 2, 3, 5}) EXPECT_EQ(y.get(i), 0) << i;
  EXPECT_TRUE(std::isnan(y.get(4)));
  ASSERT_EQ(call(reference("rms_norm"), {arg(y), arg(x), absent(), arg(0.0)}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y.get(i))) << i;
}

TEST(ReferenceRmsNorm, a_row_has_the_same_bits_in_any_batch) {
  const Tensor many = random(kF32, {7, 257});
  Tensor one = make(kF32, {1, 257}), y_many = make(kF32, {7, 257}), y_one = one;
  one.fill([&](int64_t i) { return many.get(5 * 257 + i); });
  call(reference("rms_norm"), {arg(y_many), arg(many), absent(), arg(1e-6)});
  call(reference("rms_norm"), {arg(y_one), arg(one), absent(), arg(1e-6)});
  for (int64_t i = 0; i < 257; ++i) ASSERT_EQ(y_one.bits(i), y_many.bits(5 * 257 + i));
}

TEST(ReferenceFusedAddRmsNorm, writes_the_sum_and_the_norm_of_the_stored_sum) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        Tensor x = random(dtype, shape, layout), residual = random(dtype, shape, layout, 7);
        const Tensor weight = random(kF32, {shape.back()}, layout, 2);
        // Sums of f32 values are exactly rounded in f32; narrower types round the f32 sum again.
        std::vector<Expected> sum;
        for (int64_t i = 0; i < x.elements(); ++i) {
          const double value = x.get(i) + residual.get(i);
          sum.push_back({value, kEps * std::fabs(value)});
        }
        const auto r =
            call(reference("fused_add_rms_norm"), {arg(x), arg(residual), arg(weight), arg(1e-6)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(residual, sum);
        expect_close(x, expected_rms_norm(residual, &weight, 1e-6, pairwise_error(shape.back())));
      }
    }
  }
}

TEST(ReferenceFusedAddRmsNorm, works_without_weight) {
  Tensor x = random(kF16, {2, 12}), residual = random(kF16, {2, 12}, Layout::contiguous, 7);
  ASSERT_EQ(
      call(reference("fused_add_rms_norm"), {arg(x), arg(residual), absent(), arg(0.1)}).outcome,
      OPMUX_OK);
  expect_close(x, expected_rms_norm(residual, nullptr, 0.1, pairwise_error(12)));
}

TEST(ReferenceLayerNorm, is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        const Tensor x = random(dtype, shape, layout, 1, 3);
        const Tensor weight = random(dtype, {shape.back()}, layout, 2);
        const Tensor bias = random(kF32, {shape.back()}, layout, 3);
        Tensor y = make(dtype, shape, layout);
        const auto r =
            call(reference("layer_norm"), {arg(y), arg(x), arg(weight), arg(bias), arg(1e-5)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_layer_norm(x, &weight, &bias, 1e-5));
      }
    }
  }
}

TEST(ReferenceLayerNorm, weight_and_bias_are_optional_one_by_one) {
  const Tensor x = random(kF32, {3, 40}), vector = random(kF32, {40}, Layout::contiguous, 2);
  const Tensor* none = nullptr;
  for (auto [weight, bias] : {std::pair{none, none}, {&vector, none}, {none, &vector}}) {
    Tensor y = make(kF32, {3, 40});
    ASSERT_EQ(
        call(reference("layer_norm"), {arg(y), arg(x), arg(weight), arg(bias), arg(1e-5)}).outcome,
        OPMUX_OK);
    expect_close(y, expected_layer_norm(x, weight, bias, 1e-5));
  }
}

TEST(ReferenceLayerNorm, a_large_mean_does_not_degrade_the_variance) {
  Tensor x = make(kF32, {1, 64}), y = x;
  x.fill([](int64_t i) { return 10000.0 + double(i % 2); });
  ASSERT_EQ(call(reference("layer_norm"), {arg(y), arg(x), absent(), absent(), arg(0.0)}).outcome,
            OPMUX_OK);
  for (int64_t i = 0; i < 64; ++i) ASSERT_NEAR(y.get(i), i % 2 ? 1 : -1, 0.01);
}

}  // namespace
}  // namespace opmux::testing
