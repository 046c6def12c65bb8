#include <algorithm>

#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

std::vector<Expected> expected_softmax(const Tensor& x, double scale) {
  std::vector<Expected> result;
  for (const std::vector<double>& row : rows_of(x)) {
    double largest = -HUGE_VAL, sum = 0;
    for (double v : row) largest = std::max(largest, scale * v);
    for (double v : row) sum += std::exp(scale * v - largest);
    for (double v : row) {
      const double value = std::exp(scale * v - largest) / sum;
      const double exponent = std::fabs(scale * v) + 2 * std::fabs(largest);
      const double error = pairwise_error(x.dim(-1)) + (8 + 4 * exponent) * kEps;
      result.push_back({value, value * error});
    }
  }
  return result;
}

Tensor softmax(const Tensor& x, double scale = 1) {
  Tensor y = make(x.dtype(), {x.dim(0), x.dim(-1)});
  EXPECT_EQ(call(reference("softmax"), {arg(y), arg(x), arg(scale)}).outcome, OPMUX_OK);
  return y;
}

TEST(ReferenceSoftmax, is_right_for_every_type_shape_stride_and_scale) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const auto& shape : kShapes) {
        for (double scale : {1.0, 0.125, -2.0}) {
          SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
          const Tensor x = random(dtype, shape, layout);
          Tensor y = make(dtype, shape, layout);
          const auto r = call(reference("softmax"), {arg(y), arg(x), arg(scale)});
          ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
          expect_close(y, expected_softmax(x, scale));
        }
      }
    }
  }
}

TEST(ReferenceSoftmax, large_values_do_not_overflow) {
  Tensor x = make(kF32, {1, 3});
  x.fill([](int64_t i) { return 1e4 + double(i); });
  expect_close(softmax(x), expected_softmax(x, 1));
}

TEST(ReferenceSoftmax, masked_elements_are_zero_and_a_row_of_them_is_all_zero) {
  Tensor x = make(kF32, {2, 3});
  x.fill([](int64_t i) { return i == 1 || i >= 3 ? -HUGE_VAL : 0; });
  const Tensor y = softmax(x);
  EXPECT_EQ(y.get(0), 0.5);
  EXPECT_EQ(y.get(1), 0);
  for (int64_t i = 3; i < 6; ++i) EXPECT_EQ(y.get(i), 0);
}

TEST(ReferenceSoftmax, nan_makes_its_row_nan_even_among_masked_elements) {
  Tensor x = make(kF32, {2, 3});
  x.fill([](int64_t i) { return i == 1 ? NAN : i < 3 ? -HUGE_VAL : 1; });
  const Tensor y = softmax(x);
  EXPECT_TRUE(std::isnan(y.get(1)));
  EXPECT_NEAR(y.get(4), 1.0 / 3, 1e-7);
}

}  // namespace
}  // namespace opmux::testing
