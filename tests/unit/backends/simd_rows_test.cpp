#include "simd.hpp"

namespace opmux::testing {
namespace {

// Operators that map rows to rows, compared with the reference in f32.
class SimdRows : public SimdTest {
 protected:
  // Any type, shape and stride; `error` is relative to the result, `noise` is absolute. A row of x
  // has `factor` elements for each element of y.
  void expect_like_reference(const char* op, const std::vector<opmux_arg>& extra, double error,
                             double noise, int64_t factor = 1) const {
    for (opmux_dtype dtype : kFloats) {
      for (Layout layout : kInnerContiguous) {
        for (auto shape : kShapes) {
          SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
          Tensor y = make(dtype, shape, layout), exact = make(kF32, shape);
          const double sums = lanes_error(shape.back());
          shape.back() *= factor;
          const Tensor x = random(dtype, shape, layout);
          run_both(op, y, exact, x, extra);
          expect_close(y, around(exact, error + sums, noise + sums));
        }
      }
    }
  }
  void run_both(const char* op, const Tensor& y, const Tensor& exact, const Tensor& x,
                const std::vector<opmux_arg>& extra) const {
    std::vector<opmux_arg> args = {arg(y), arg(x)};
    args.insert(args.end(), extra.begin(), extra.end());
    const auto r = call(simd(op), args);
    ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
    args[0] = arg(exact);
    ASSERT_EQ(call(reference(op), args).outcome, OPMUX_OK);
  }
  // One row of f32.
  std::vector<double> row(const char* op, const std::vector<double>& values, size_t results,
                          const std::vector<opmux_arg>& extra = {}) const {
    Tensor x = make(kF32, {1, int64_t(values.size())}), y = make(kF32, {1, int64_t(results)});
    x.fill([&](int64_t i) { return values[size_t(i)]; });
    std::vector<opmux_arg> args = {arg(y), arg(x)};
    args.insert(args.end(), extra.begin(), extra.end());
    EXPECT_EQ(call(simd(op), args).outcome, OPMUX_OK);
    return rows_of(y)[0];
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, SimdRows, kSimdTargets, simd_target_name);

TEST_P(SimdRows, layer_norm_is_right_for_every_type_shape_and_stride) {
  expect_like_reference("layer_norm", {absent(), absent(), arg(1e-2)}, 16 * kEps, 64 * kEps);
}

TEST_P(SimdRows, layer_norm_takes_weight_and_bias_of_any_type_one_by_one) {
  const Tensor x = random(kF32, {3, 71});
  const Tensor* none = nullptr;
  for (opmux_dtype dtype : kFloats) {
    const Tensor weight = random(dtype, {71}, Layout::contiguous, 2);
    const Tensor bias = random(kBF16, {71}, Layout::contiguous, 3);
    for (auto [w, b] : {std::pair{&weight, &bias}, {&weight, none}, {none, &bias}}) {
      Tensor y = make(kF32, {3, 71}), exact = y;
      run_both("layer_norm", y, exact, x, {arg(w), arg(b), arg(1e-5)});
      expect_close(y, around(exact, 32 * kEps, 128 * kEps));
    }
  }
}

TEST_P(SimdRows, layer_norm_of_a_large_mean_keeps_its_variance) {
  Tensor x = make(kF32, {1, 64}), y = x;
  x.fill([](int64_t i) { return 10000.0 + double(i % 2); });
  ASSERT_EQ(call(simd("layer_norm"), {arg(y), arg(x), absent(), absent(), arg(0.0)}).outcome,
            OPMUX_OK);
  for (int64_t i = 0; i < 64; ++i) ASSERT_NEAR(y.get(i), i % 2 ? 1 : -1, 0.01);
}

TEST_P(SimdRows, layer_norm_adds_nothing_past_the_end_of_a_row) {
  // Zeros after the end would add the square of the mean once centred.
  for (int64_t size : {2, 6, 18, 34}) {
    Tensor x = make(kF32, {1, size}), y = x;
    x.fill([](int64_t i) { return 100.0 + double(i % 2); });
    ASSERT_EQ(call(simd("layer_norm"), {arg(y), arg(x), absent(), absent(), arg(0.0)}).outcome,
              OPMUX_OK);
    for (int64_t i = 0; i < size; ++i) ASSERT_NEAR(y.get(i), i % 2 ? 1 : -1, 1e-4);
  }
}

TEST_P(SimdRows, fused_add_rms_norm_writes_the_sum_and_the_norm_of_the_stored_sum) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        Tensor x = random(dtype, shape, layout), residual = random(dtype, shape, layout, 7);
        Tensor x_copy = x, sum = residual;
        const Tensor weight = random(kF32, {shape.back()}, layout, 2);
        for (const Tensor* given : {&weight, static_cast<const Tensor*>(nullptr)}) {
          const auto r =
              call(simd("fused_add_rms_norm"), {arg(x), arg(residual), arg(given), arg(1e-6)});
          ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
          call(reference("fused_add_rms_norm"), {arg(x_copy), arg(sum), arg(given), arg(1e-6)});
          EXPECT_EQ(residual.bytes(), sum.bytes());
          expect_close(x, expected_rms_norm(residual, given, 1e-6, lanes_error(shape.back())));
          x_copy = x;
        }
      }
    }
  }
}

TEST_P(SimdRows, fused_add_rms_norm_rounds_before_the_weight_on_request) {
  Tensor x = make(kBF16, {1, 40}).fill([](int64_t) { return 0.25; }), plain = x;
  Tensor residual = make(kBF16, {1, 40}).fill([](int64_t) { return 0.75; }), again = residual;
  const Tensor weight = random(kBF16, {40}, Layout::contiguous, 2);
  const opmux_impl& impl = simd("fused_add_rms_norm");
  call(impl, {arg(x), arg(residual), arg(weight), arg(0.3), bool_arg(true)});
  call(impl, {arg(plain), arg(again), arg(weight), arg(0.3)});
  const Format format = Format::of(kBF16);
  const double rounded = format.decode(format.encode(1 / std::sqrt(1.3f)));
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(x.bits(i), format.encode(rounded * weight.get(i)));
  EXPECT_NE(x.bytes(), plain.bytes());
}

TEST_P(SimdRows, gelu_and_mul_is_right_for_every_type_shape_and_stride) {
  expect_like_reference("gelu_and_mul", {enum_arg(0)}, 128 * kEps, 0, 2);
}

TEST_P(SimdRows, gelu_and_mul_with_tanh_is_right_for_every_type_shape_and_stride) {
  expect_like_reference("gelu_and_mul", {enum_arg(1)}, 512 * kEps, 0, 2);
}

TEST_P(SimdRows, activations_of_every_number_of_16_bits_are_as_precise_as_these) {
  for (opmux_dtype dtype : {kF16, kBF16}) {
    SCOPED_TRACE(name(dtype));
    const Format format = Format::of(dtype);
    const Tensor x = make(dtype, {256, 512}).fill([&](int64_t i) {
      const double gate = format.decode(uint32_t(i / 512 * 256 + i % 256));
      return i % 512 >= 256 ? 1 : std::isfinite(gate) ? gate : 0;
    });
    for (const auto& [op, extra] :
         {std::pair{"silu_and_mul", std::vector<opmux_arg>{}}, {"gelu_and_mul", {enum_arg(1)}}}) {
      const Tensor y = make(dtype, {256, 256}), exact = make(kF32, {256, 256});
      run_both(op, y, exact, x, extra);
      expect_close(y, around(exact, 64 * kEps, 1e-38));
    }
  }
}

TEST_P(SimdRows, gelu_keeps_its_digits_far_below_zero) {
  for (double v : {-0.5, -2.0, -5.0, -9.0, -12.5}) {
    const double value = row("gelu_and_mul", {v, 1}, 1, {enum_arg(0)})[0];
    const double exact = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    EXPECT_NEAR(value, exact, std::fabs(exact) * (16 + v * v) * kEps) << v;
  }
}

TEST_P(SimdRows, gelu_of_large_values_and_nan_is_right) {
  for (int64_t form : {0, 1}) {
    const auto y = row("gelu_and_mul", {-300, 300, HUGE_VAL, NAN, -1e30, 0, 1, 2, 1, 1, 1, 1}, 6,
                       {enum_arg(form)});
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 600);
    EXPECT_EQ(y[2], HUGE_VAL);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 0);
    EXPECT_EQ(y[5], 0);
  }
}

TEST_P(SimdRows, softmax_is_right_for_every_type_shape_stride_and_scale) {
  for (double scale : {1.0, 0.125, -2.0}) {
    expect_like_reference("softmax", {arg(scale)}, 128 * kEps, 0);
  }
}

TEST_P(SimdRows, softmax_of_masked_elements_is_zero_and_of_a_row_of_them_too) {
  const double none = -HUGE_VAL;
  EXPECT_THAT(row("softmax", {0, none, 0}, 3), ::testing::ElementsAre(0.5, 0, 0.5));
  EXPECT_THAT(row("softmax", {none, none, none}, 3), ::testing::Each(0));
  EXPECT_THAT(row("softmax", std::vector<double>(70, none), 70), ::testing::Each(0));
}

TEST_P(SimdRows, softmax_of_negative_values_ignores_elements_past_the_end) {
  for (size_t size : {1, 3, 17, 35}) {
    const auto y = row("softmax", std::vector<double>(size, -500.0), size);
    for (double share : y) EXPECT_NEAR(share, 1 / double(size), 1e-6);
  }
}

TEST_P(SimdRows, softmax_of_a_row_with_nan_or_infinity_at_any_position_is_nan) {
  for (double special : {double(NAN), HUGE_VAL}) {
    for (size_t place : {0, 7, 16, 34}) {
      std::vector<double> values(35, place % 2 ? -HUGE_VAL : 1.0);
      values[place] = special;
      for (double share : row("softmax", values, 35)) EXPECT_TRUE(std::isnan(share)) << place;
    }
  }
}

TEST_P(SimdRows, operators_on_rows_decline_an_output_of_another_type) {
  const Tensor x = random(kF32, {1, 8});
  for (const char* op : {"layer_norm", "softmax"}) {
    Tensor y = make(kF16, {1, 8});
    const Tensor before = y;
    EXPECT_EQ(call(simd(op), {arg(y), arg(x)}).outcome, OPMUX_DECLINED) << op;
    EXPECT_EQ(y.bytes(), before.bytes());
  }
}

}  // namespace
}  // namespace opmux::testing
