#include "schema/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace opmux::schema {
namespace {

TEST(Half, every_number_comes_back_as_it_was) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto word = static_cast<uint16_t>(bits);
    if (!std::isnan(from_f16(word))) {
      EXPECT_EQ(to_f16(from_f16(word)), word);
    }
    if (!std::isnan(from_bf16(word))) {
      EXPECT_EQ(to_bf16(from_bf16(word)), word);
    }
  }
}

TEST(Half, known_numbers) {
  EXPECT_EQ(from_f16(0x3c00), 1.0f);
  EXPECT_EQ(from_f16(0xc000), -2.0f);
  EXPECT_EQ(from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(from_f16(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(from_bf16(0x3f80), 1.0f);
}

TEST(Half, rounds_to_the_nearest_and_halves_to_even) {
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(to_f16(3 * 0x1p-25f), 0x0002);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Half, nan_stays_nan) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(from_f16(to_f16(none))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(none))));
}

}  // namespace
}  // namespace opmux::schema
