#include "expected_matmul.hpp"
#include "simd.hpp"

namespace opmux::testing {
namespace {

class SimdAmx : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing =
        base::missing_features(view(amx().caps->cpu_features), base::cpu_features());
    if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
    opmux_facts facts{};
    ASSERT_EQ(amx().verify(amx().user_data, &facts, nullptr), OPMUX_OK);
  }
  static const opmux_impl& amx() { return *simd_plugin().find("linear", "amx"); }
  static Tensor linear_of(const Tensor& x, const Tensor& weight, const Tensor* bias,
                          Layout layout = Layout::contiguous) {
    const opmux_tensor& c = x.c();
    std::vector<int64_t> shape(c.shape, c.shape + c.ndim);
    shape.back() = weight.dim(0);
    Tensor y = make(kBF16, shape, layout);
    const auto r = call(amx(), {arg(y), arg(x), arg(weight), arg(bias)});
    EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
    return y;
  }
};

TEST_F(SimdAmx, is_right_for_full_and_part_filled_tiles) {
  for (const int64_t rows : {1, 4, 5, 16, 17, 32, 33}) {
    for (const int64_t width : {16, 48, 80}) {
      for (const int64_t depth : {32, 33, 50, 160, 191}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) + " x " +
                     std::to_string(width));
        const Tensor x = random(kBF16, {rows, depth});
        const Tensor weight = random(kBF16, {width, depth}, Layout::contiguous, 2);
        expect_close(linear_of(x, weight, nullptr),
                     in_lanes(expected_linear(x, weight, nullptr), depth));
      }
    }
  }
}

TEST_F(SimdAmx, is_right_for_more_rows_than_it_is_good_at) {
  ASSERT_EQ(amx().hint_count, 1u);
  const int64_t rows = amx().hints[0].most + 17;
  const Tensor x = random(kBF16, {rows, 32});
  const Tensor weight = random(kBF16, {16, 32}, Layout::contiguous, 2);
  expect_close(linear_of(x, weight, nullptr), in_lanes(expected_linear(x, weight, nullptr), 32));
}

TEST_F(SimdAmx, is_right_for_every_stride_and_bias) {
  for (const Layout layout : kInnerContiguous) {
    for (const opmux_dtype dtype : kFloats) {
      SCOPED_TRACE(name(layout) + " bias " + name(dtype));
      const Tensor x = random(kBF16, {3, 7, 64}, layout);
      const Tensor weight = random(kBF16, {48, 64}, layout, 2), bias = random(dtype, {48}, layout);
      expect_close(linear_of(x, weight, &bias, layout),
                   in_lanes(expected_linear(x, weight, &bias), 64));
    }
  }
}

TEST_F(SimdAmx, a_row_does_not_depend_on_its_neighbours) {
  const Tensor x = random(kBF16, {37, 128}), weight = random(kBF16, {32, 128});
  const Tensor all = linear_of(x, weight, nullptr);
  const Tensor last = make(kBF16, {5, 128}).fill([&](int64_t i) { return x.get(32 * 128 + i); });
  const Tensor alone = linear_of(last, weight, nullptr);
  for (int64_t i = 0; i < 5 * 32; ++i) EXPECT_EQ(alone.bits(i), all.bits(32 * 32 + i));
}

TEST_F(SimdAmx, nan_and_infinity_stay_in_their_row) {
  Tensor x = random(kBF16, {9, 64});
  x.set(3 * 64, std::numeric_limits<double>::quiet_NaN());
  x.set(5 * 64, std::numeric_limits<double>::infinity());
  const Tensor y = linear_of(x, random(kBF16, {16, 64}, Layout::contiguous, 2), nullptr);
  for (int64_t i = 0; i < 9 * 16; ++i) {
    EXPECT_EQ(std::isnan(y.get(i)), i / 16 == 3) << i;
    EXPECT_EQ(std::isinf(y.get(i)), i / 16 == 5) << i;
  }
}

TEST_F(SimdAmx, divides_columns_among_threads) {
  const Tensor x = random(kBF16, {20, 64}), weight = random(kBF16, {160, 64});
  Tensor y = make(kBF16, {20, 160});
  int64_t pieces = 0;
  ASSERT_EQ(call(amx(), {arg(y), arg(x), arg(weight), absent()}, {2, backwards, &pieces}).outcome,
            OPMUX_OK);
  EXPECT_EQ(pieces, 2 + 3);  // Groups of rows to pack, then blocks of 64 columns.
  expect_close(y, in_lanes(expected_linear(x, weight, nullptr), 64));
}

}  // namespace
}  // namespace opmux::testing
