#include "verify/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace opmux::verify {
namespace {

double there_and_back(double value, DType dtype) {
  std::byte memory[8];
  write_element(memory, dtype, value);
  return read_element(memory, dtype);
}

TEST(VerifyElement, every_half_is_its_own_rounding) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    for (const DType dtype : {f16, bf16}) {
      const double value = read_element(reinterpret_cast<const std::byte*>(&half), dtype);
      if (std::isnan(value)) continue;
      ASSERT_EQ(rounded(value, dtype), value) << bits;
      ASSERT_EQ(there_and_back(value, dtype), value) << bits;
    }
  }
}

TEST(VerifyElement, rounds_ties_to_even) {
  EXPECT_EQ(rounded(1 + 0x1p-11, f16), 1);
  EXPECT_EQ(rounded(1 + 3 * 0x1p-11, f16), 1 + 0x1p-9);
  EXPECT_EQ(rounded(1 + 0x1p-8, bf16), 1);
  EXPECT_EQ(rounded(-1 - 3 * 0x1p-8, bf16), -1 - 0x1p-6);
  EXPECT_EQ(rounded(1 + 0x1p-24, f32), 1);
  EXPECT_EQ(rounded(1 + 0x1.8p-24, f32), 1 + 0x1p-23);
}

TEST(VerifyElement, rounds_at_the_ends_of_a_type) {
  EXPECT_EQ(rounded(65519, f16), 65504);
  EXPECT_EQ(rounded(65520, f16), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded(-1e39, bf16), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded(0x1p-25, f16), 0);
  EXPECT_EQ(rounded(0x1.8p-25, f16), 0x1p-24);
  EXPECT_EQ(rounded(300, i8), 127);
  EXPECT_EQ(rounded(-5, u8), 0);
}

TEST(VerifyElement, keeps_integers_and_specials) {
  EXPECT_EQ(there_and_back(-1, i32), -1);
  EXPECT_EQ(there_and_back(-128, i8), -128);
  EXPECT_EQ(there_and_back(255, u8), 255);
  EXPECT_EQ(there_and_back(1e12, i64), 1e12);
  for (const DType dtype : {f32, f16, bf16}) {
    EXPECT_TRUE(std::isnan(there_and_back(std::nan(""), dtype)));
    EXPECT_TRUE(std::isinf(there_and_back(-INFINITY, dtype)));
  }
}

TEST(VerifyElement, knows_the_spacing_of_a_type) {
  EXPECT_EQ(unit_roundoff(f32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(bf16), 0x1p-8);
  EXPECT_EQ(half_step(1.5, f16), 0x1p-11);
  EXPECT_EQ(smallest(f16), 0x1p-24);
  EXPECT_EQ(half_step(7, i32), 0);
}

TEST(VerifyElement, rounds_alike_where_values_are_normal_and_beyond) {
  // By the distance of neighbouring values, for random values of every exponent that a float has.
  const auto by_distance = [](double value, int bits, int least_exponent) {
    const int exponent = std::max(std::ilogb(value), least_exponent);
    const double step = std::ldexp(1.0, exponent - bits);
    return std::nearbyint(value / step) * step;
  };
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double part = 1 + static_cast<double>(random() >> 11) * 0x1p-53;
    const double value = std::ldexp(i % 2 == 0 ? part : -part, i % 282 - 155);
    const auto single = static_cast<double>(static_cast<float>(value));
    if (std::isfinite(single)) {
      ASSERT_EQ(rounded(value, f32), single) << value;
    }
    if (std::abs(value) < 0x1p127) {
      ASSERT_EQ(rounded(value, bf16), by_distance(value, 7, -126)) << value;
    }
    if (std::abs(value) < 0x1p15) {
      ASSERT_EQ(rounded(value, f16), by_distance(value, 10, -14)) << value;
    }
  }
}

}  // namespace
}  // namespace opmux::verify
