#include "verify/small_floats.hpp"

#include <cmath>

#include "backends/common/small_floats.hpp"
#include "stage.hpp"
#include "verify/bounds.hpp"

namespace opmux::test {
namespace {

constexpr DType kFloats8[] = {f8_e4m3fn, f8_e4m3fnuz, f8_e5m2, f8_e5m2fnuz};

TEST(Truth, small_floats_have_names) {
  EXPECT_EQ(name_of(f8_e4m3fn), "f8_e4m3fn");
  EXPECT_EQ(name_of(f4_e2m1fn_x2), "f4_e2m1fn_x2");
  EXPECT_EQ(f4_e2m1fn_x2.size_bytes(), 1);
  for (const DType dtype : kFloats8) EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  EXPECT_EQ(parse_dtype("float8_e5m2fnuz"), f8_e5m2fnuz);
  EXPECT_EQ(parse_dtype("float4_e2m1fn_x2"), f4_e2m1fn_x2);
  EXPECT_EQ(parse_dtype("float32").bits, 0) << "only the names of small floats are read in full";
}

TEST(Truth, small_floats_are_read_as_their_standards_say) {
  const auto value = [](DType dtype, int bits) {
    return verify::decoded(*verify::small_float(dtype), static_cast<uint8_t>(bits));
  };
  EXPECT_EQ(value(f8_e4m3fn, 0x7e), 448);
  EXPECT_EQ(value(f8_e4m3fn, 0x01), 0x1p-9);
  EXPECT_EQ(value(f8_e4m3fn, 0xb8), -1);
  EXPECT_TRUE(std::isnan(value(f8_e4m3fn, 0xff)));
  EXPECT_EQ(value(f8_e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(value(f8_e4m3fnuz, 0x01), 0x1p-10);
  EXPECT_TRUE(std::isnan(value(f8_e4m3fnuz, 0x80)));
  EXPECT_EQ(value(f8_e5m2, 0x7b), 57344);
  EXPECT_EQ(value(f8_e5m2, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(value(f8_e5m2, 0x7d)));
  EXPECT_EQ(value(f8_e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(value(f8_e5m2fnuz, 0x01), 0x1p-17);
  const std::vector<double> pairs{0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int bits = 0; bits < 8; ++bits) {
    EXPECT_EQ(verify::decoded_e2m1(bits), pairs[static_cast<size_t>(bits)]);
    EXPECT_EQ(verify::decoded_e2m1(bits | 8), -pairs[static_cast<size_t>(bits)]);
    EXPECT_EQ(backends::float4(bits | 8), static_cast<float>(verify::decoded_e2m1(bits | 8)));
  }
}

TEST(Truth, small_floats_are_written_as_they_are_read) {
  for (const DType dtype : kFloats8) {
    const verify::SmallFloat& type = *verify::small_float(dtype);
    const backends::Float8& same = *backends::float8_of({dtype.code, dtype.bits, dtype.lanes});
    for (int bits = 0; bits < 256; ++bits) {
      const double value = verify::decoded(type, static_cast<uint8_t>(bits));
      const float of_kernels = backends::to_float(same, static_cast<uint8_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(of_kernels) &&
                    std::isnan(verify::decoded(type, verify::encoded(type, value))));
        continue;
      }
      EXPECT_EQ(verify::encoded(type, value), bits) << name_of(dtype);
      EXPECT_EQ(of_kernels, value) << name_of(dtype) << " " << bits;
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(verify::rounded(value, dtype), value);
      EXPECT_EQ(backends::rounded(same, of_kernels), of_kernels);
    }
  }
}

TEST(Truth, small_floats_round_to_even_and_saturate) {
  for (const DType dtype : kFloats8) {
    const backends::Float8& same = *backends::float8_of({dtype.code, dtype.bits, dtype.lanes});
    for (double value = 0x1p-19; value < 1e5; value *= 1.03) {
      const double wide = verify::rounded(static_cast<float>(value), dtype);
      const float narrow = backends::rounded(same, static_cast<float>(value));
      if (!std::isfinite(wide)) continue;
      EXPECT_EQ(wide, narrow) << name_of(dtype) << " " << value;
    }
  }
  EXPECT_EQ(verify::rounded(1e9, f8_e4m3fn), 448);
  EXPECT_EQ(verify::rounded(-1e9, f8_e4m3fnuz), -240);
  EXPECT_EQ(verify::rounded(1e9, f8_e5m2), INFINITY);
  EXPECT_EQ(verify::rounded(17, f8_e4m3fn), 16) << "16 is even, 18 is not";
  EXPECT_TRUE(std::isnan(verify::rounded(INFINITY, f8_e4m3fn)));
}

TEST(Truth, capabilities_rules_and_cached_decisions_tell_small_floats_apart) {
  Stage stage;
  const Operator op = stage.define("take(out Tensor y[N], Tensor x[N])");
  stage.add({.id = "take/pairs.x", .priority = 300, .caps = Caps{}.dtypes("x", {f4_e2m1fn_x2})});
  stage.add({.id = "take/fn.x", .priority = 200, .caps = Caps{}.dtypes("x", {f8_e4m3fn})});
  stage.add({.id = "take/any.x", .priority = 100});
  stage.add({.id = "take/uz.x", .priority = 50});
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules:\n  - {op: take, when: 'dtype(x) == \"f8_e5m2fnuz\"', "
                        "prefer: [take/uz.x]}\n",
                        "test")
                  .ok());
  alignas(64) uint8_t from[16] = {};
  float to[16];
  const auto runs = [&](DType dtype, int64_t size) {
    return ran_by([&] {
      EXPECT_TRUE(op(TensorView(to, f32, {size}), TensorView(from, dtype, {size})).ok());
    });
  };
  for (int64_t size = 1; size < 9; ++size) {
    EXPECT_EQ(runs(f4_e2m1fn_x2, size), "take/pairs.x");
    EXPECT_EQ(runs(f8_e4m3fn, size), "take/fn.x");
    EXPECT_EQ(runs(f8_e5m2, size), "take/any.x");
    EXPECT_EQ(runs(f8_e5m2fnuz, size), "take/uz.x");
  }
  EXPECT_EQ(stage.stats("take/pairs.x").decided_each_time, 0u) << "two lanes fit into a class";
  EXPECT_EQ(runs({OPMUX_DTYPE_FLOAT4_E2M1FN, 4, 1}, 2), "take/any.x") << "one lane is another type";
  EXPECT_EQ(runs({OPMUX_DTYPE_FLOAT, 32, 2}, 2), "take/any.x");
  EXPECT_EQ(stage.stats("take/any.x").decided_each_time, 2u);
  const Explanation why = op.explain(TensorView(to, f32, {2}), TensorView(from, f4_e2m1fn_x2, {2}));
  EXPECT_EQ(candidate(why, "take/fn.x").reason, "dtype(x) must be f8_e4m3fn, is f4_e2m1fn_x2");
}

}  // namespace
}  // namespace opmux::test
