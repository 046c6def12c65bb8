#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

// Integers over the whole range of a type.
Tensor random_bytes(opmux_dtype dtype, std::vector<int64_t> shape,
                    Layout layout = Layout::contiguous, unsigned seed = 5) {
  std::mt19937 engine(seed);
  return make(dtype, std::move(shape), layout).fill([&](int64_t) {
    return double(engine() % 256) - (dtype.code == OPMUX_DTYPE_INT ? 128 : 0);
  });
}
Tensor positive(Tensor tensor) {
  return tensor.fill([before = tensor](int64_t i) { return std::fabs(before.get(i)) + 0.01; });
}
std::vector<int64_t> with_last(std::vector<int64_t> leading, int64_t last) {
  leading.push_back(last);
  return leading;
}

struct W8 {
  Tensor x, weight, weight_scale;
  const Tensor* x_scale = nullptr;
  const Tensor* bias = nullptr;
};

W8 make_w8(opmux_dtype x, const std::vector<int64_t>& leading, int64_t n, int64_t k,
           Layout layout = Layout::contiguous) {
  return {x.bits == 8 ? random_bytes(x, with_last(leading, k), layout)
                      : random(x, with_last(leading, k), layout),
          random_bytes(kI8, {n, k}, layout, 6),
          make(kF32, {n}, layout).fill([](int64_t i) { return 0.001 * double(1 + i); })};
}
CallResult run_w8(const Tensor& y, const W8& w) {
  return call(reference("linear_w8a8"),
              {arg(y), arg(w.x), arg(w.weight), arg(w.weight_scale), arg(w.x_scale), arg(w.bias)});
}

// The integers are defined to the bit, so only the final multiplications are inexact. The scale and
// the quotients are computed in f32.
std::vector<Expected> expected_w8(const W8& w) {
  const int64_t k = w.x.dim(-1), n = w.weight.dim(0);
  std::vector<Expected> result;
  for (int64_t r = 0; k > 0 && r < w.x.elements() / k; ++r) {
    float scale = 0;
    for (int64_t i = 0; i < k; ++i) scale = std::max(scale, float(std::fabs(w.x.get(r * k + i))));
    scale = w.x_scale ? float(w.x_scale->get(r)) : scale / 127.0f;
    std::vector<int64_t> row;
    for (int64_t i = 0; i < k; ++i) {
      const double value = w.x.get(r * k + i);
      const double quotient = scale == 0 ? 0 : double(float(value) / scale);
      const double rounded = w.x.dtype().bits == 8 ? value : std::nearbyint(quotient);
      row.push_back(int64_t(std::min(127.0, std::max(-128.0, rounded))));
    }
    for (int64_t c = 0; c < n; ++c) {
      int64_t sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += row[size_t(i)] * int64_t(w.weight.get(c * k + i));
      const double value = double(sum) * scale * w.weight_scale.get(c);
      const double added = w.bias ? w.bias->get(c) : 0;
      result.push_back({value + added, 6 * kEps * (std::fabs(value) + std::fabs(added))});
    }
  }
  return result;
}

TEST(ReferenceLinearW8A8, is_right_for_every_type_and_stride_with_and_without_scales) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(name(dtype) + " " + name(layout));
      const Tensor scale = positive(random(kF32, {2, 3}, layout, 8));
      const Tensor bias = random(dtype, {5}, layout, 9);
      for (const Tensor* given : {static_cast<const Tensor*>(nullptr), &scale}) {
        W8 w = make_w8(dtype, {2, 3}, 5, 67, layout);
        w.x_scale = given;
        w.bias = given ? &bias : nullptr;
        Tensor y = make(dtype, {2, 3, 5}, layout);
        const auto r = run_w8(y, w);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_w8(w));
      }
      W8 integers = make_w8(kI8, {2, 3}, 5, 67, layout);
      integers.x_scale = &scale;
      Tensor y = make(dtype, {2, 3, 5}, layout);
      ASSERT_EQ(run_w8(y, integers).outcome, OPMUX_OK);
      expect_close(y, expected_w8(integers));
    }
  }
}

TEST(ReferenceLinearW8A8, sums_are_exact_at_the_largest_depth) {
  const int64_t k = 131071;
  W8 w{make(kI8, {1, k}), make(kI8, {1, k}), make(kF32, {1})};
  Tensor one = make(kF32, {1}), y = make(kF32, {1, 1});
  w.x_scale = &one;
  w.weight_scale.set(0, 1);
  one.set(0, 1);
  w.x.fill([](int64_t) { return -128; });
  w.weight.fill([](int64_t) { return -128; });
  ASSERT_EQ(run_w8(y, w).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), double(float(16384.0 * double(k))));
}

TEST(ReferenceLinearW8A8, a_given_scale_saturates_and_ties_go_to_even) {
  W8 w{make(kF32, {1, 6}), make(kI8, {6, 6}), make(kF32, {6})};
  const double values[] = {0.5, 1.5, -2.5, 300, -300, HUGE_VAL},
               rounded[] = {0, 2, -2, 127, -128, 127};
  w.x.fill([&](int64_t i) { return values[i]; });
  w.weight.fill([](int64_t i) { return i / 6 == i % 6; });
  w.weight_scale.fill([](int64_t) { return 1; });
  Tensor one = make(kF32, {1}), y = make(kF32, {1, 6});
  one.set(0, 1);
  w.x_scale = &one;
  ASSERT_EQ(run_w8(y, w).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.get(i), rounded[i]);
}

TEST(ReferenceLinearW8A8, zeros_give_zeros_and_unrepresentable_rows_give_nan) {
  W8 w = make_w8(kF32, {4}, 3, 8);
  for (int64_t i = 0; i < 8; ++i) w.x.set(i, 0);
  w.x.set(8 + 3, NAN);
  w.x.set(16 + 3, HUGE_VAL);
  Tensor y = make(kF32, {4, 3});
  ASSERT_EQ(run_w8(y, w).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y.get(i), 0);
    EXPECT_TRUE(std::isnan(y.get(3 + i)) && std::isnan(y.get(6 + i)) &&
                std::isfinite(y.get(9 + i)));
  }
  const Tensor scale = positive(random(kF32, {4}));
  w.x_scale = &scale;
  ASSERT_EQ(run_w8(y, w).outcome, OPMUX_OK);
  EXPECT_TRUE(std::isnan(y.get(3)) && std::isfinite(y.get(6)));
}

TEST(ReferenceLinearW8A8, no_inputs_leave_the_bias) {
  W8 w = make_w8(kF32, {2}, 3, 0);
  const Tensor bias = random(kF32, {3});
  w.bias = &bias;
  Tensor y = make(kF32, {2, 3});
  ASSERT_EQ(run_w8(y, w).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), bias.bits(i % 3));
}

TEST(ReferenceLinearW8A8, integers_without_a_scale_are_an_invalid_argument) {
  const W8 w = make_w8(kI8, {2}, 3, 4);
  const auto r = run_w8(make(kF32, {2, 3}), w);
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "w8a8.x_scale");
}

struct W4 {
  Tensor x, weight, scale;
  const Tensor* zero_point = nullptr;
  const Tensor* bias = nullptr;
};

W4 make_w4(opmux_dtype dtype, const std::vector<int64_t>& leading, int64_t n, int64_t k,
           int64_t groups, Layout layout = Layout::contiguous) {
  return {random(dtype, with_last(leading, k), layout), random_bytes(kU8, {n, k / 2}, layout),
          positive(random(dtype, {n, groups}, layout, 7))};
}
CallResult run_w4(const Tensor& y, const W4& w) {
  return call(reference("linear_w4a16"),
              {arg(y), arg(w.x), arg(w.weight), arg(w.scale), arg(w.zero_point), arg(w.bias)});
}

std::vector<Expected> expected_w4(const W4& w) {
  const int64_t k = w.x.dim(-1), n = w.weight.dim(0), groups = w.scale.dim(1);
  std::vector<Expected> result;
  for (int64_t i = 0; i < w.x.elements() / k * n; ++i) {
    const int64_t row = i / n * k, c = i % n;
    double value = w.bias ? w.bias->get(c) : 0, magnitude = std::fabs(value);
    for (int64_t d = 0; d < k; ++d) {
      const int byte = int(w.weight.get(c * (k / 2) + d / 2));
      const int64_t g = c * groups + d / (k / groups);
      const double zero = w.zero_point ? w.zero_point->get(g) : 8;
      const double term =
          w.x.get(row + d) * ((d % 2 ? byte / 16 : byte % 16) - zero) * w.scale.get(g);
      value += term;
      magnitude += std::fabs(term);
    }
    result.push_back({value, magnitude * (pairwise_error(k) + 4 * kEps)});
  }
  return result;
}

TEST(ReferenceLinearW4A16, is_right_for_every_type_stride_and_group) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (int64_t groups : {1, 2, 6, 66}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " G=" + std::to_string(groups));
        W4 w = make_w4(dtype, {2, 3}, 67, 66, groups, layout);
        const Tensor bias = random(dtype, {67}, layout, 9);
        w.bias = &bias;
        Tensor y = make(dtype, {2, 3, 67}, layout);
        const auto r = run_w4(y, w);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_w4(w));
      }
    }
  }
}

TEST(ReferenceLinearW4A16, zero_points_are_bytes_or_floats) {
  Tensor bytes = make(kU8, {5, 4}), floats = make(kF16, {5, 4});
  bytes.fill([](int64_t i) { return double(i % 16); });
  floats.fill([](int64_t i) { return double(i) / 4; });
  for (const Tensor* zero : {&bytes, &floats}) {
    W4 w = make_w4(kF32, {3}, 5, 32, 4);
    w.zero_point = zero;
    Tensor y = make(kF32, {3, 5});
    ASSERT_EQ(run_w4(y, w).outcome, OPMUX_OK);
    expect_close(y, expected_w4(w));
  }
}

TEST(ReferenceLinearW4A16, the_low_half_of_a_byte_is_the_even_input_and_8_means_zero) {
  W4 w = make_w4(kF32, {1}, 1, 4, 1);
  const double bytes[] = {0x98, 0x0f}, values[] = {0, 1, 7, -8};
  w.weight.fill([&](int64_t i) { return bytes[i]; });
  w.scale.set(0, 1);
  for (int64_t k = 0; k < 4; ++k) {
    w.x.fill([&](int64_t i) { return i == k; });
    Tensor y = make(kF32, {1, 1});
    ASSERT_EQ(run_w4(y, w).outcome, OPMUX_OK);
    EXPECT_EQ(y.get(0), values[k]) << k;
  }
}

TEST(ReferenceLinearW4A16, nan_stays_in_its_row_and_that_of_a_scale_in_its_column) {
  W4 w = make_w4(kF32, {2}, 3, 8, 2);
  w.x.set(8, NAN);
  w.scale.set(5, NAN);
  Tensor y = make(kF32, {2, 3});
  ASSERT_EQ(run_w4(y, w).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(y.get(i)), i >= 2) << i;
}

}  // namespace
}  // namespace opmux::testing
