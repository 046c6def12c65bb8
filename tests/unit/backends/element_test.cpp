#include "backends/common/element.hpp"

#include <random>

#include "expected.hpp"

namespace opmux::backends {
namespace {

using testing::Format;
using testing::kBF16;
using testing::kF16;

template <class T>
struct FormatOf;
template <>
struct FormatOf<F16> {
  static Format get() { return Format::of(kF16); }
};
template <>
struct FormatOf<BF16> {
  static Format get() { return Format::of(kBF16); }
};

template <class T>
class Element : public ::testing::Test {};
using Narrow = ::testing::Types<F16, BF16>;
TYPED_TEST_SUITE(Element, Narrow);

template <class T>
void expect_rounded(float value) {
  const uint32_t expected = FormatOf<T>::get().encode(double{value});
  ASSERT_EQ(from_float<T>(value).bits, expected) << std::hexfloat << value;
}

TYPED_TEST(Element, every_value_has_its_meaning_and_survives_the_way_there_and_back) {
  const Format format = FormatOf<TypeParam>::get();
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(TypeParam{uint16_t(bits)});
    const double meaning = format.decode(bits);
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const uint32_t quiet = bits | 1u << (format.mantissa_bits - 1);
      ASSERT_EQ(from_float<TypeParam>(value).bits, quiet) << bits;
    } else {
      ASSERT_EQ(double{value}, meaning) << bits;
      ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
      ASSERT_EQ(from_float<TypeParam>(value).bits, bits);
    }
  }
}

TYPED_TEST(Element, ties_and_their_neighbours_round_to_even) {
  const Format format = FormatOf<TypeParam>::get();
  const uint32_t infinity = format.encode(HUGE_VAL);
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const float tie = float((format.decode(bits) + format.decode(bits + 1)) / 2);
    ASSERT_EQ(from_float<TypeParam>(tie).bits, bits + bits % 2) << bits;
    expect_rounded<TypeParam>(std::nextafter(tie, 0.0f));
    expect_rounded<TypeParam>(-std::nextafter(tie, HUGE_VALF));
  }
}

TYPED_TEST(Element, rounding_agrees_with_double_arithmetic_on_random_bits) {
  std::mt19937 engine(5);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(uint32_t(engine()));
    if (!std::isnan(value)) expect_rounded<TypeParam>(value);
  }
}

TYPED_TEST(Element, beyond_the_largest_value_is_infinity) {
  const Format format = FormatOf<TypeParam>::get();
  const uint32_t infinity = format.encode(HUGE_VAL);
  const float largest = float(format.decode(infinity - 1));
  EXPECT_EQ(from_float<TypeParam>(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(from_float<TypeParam>(largest).bits, infinity - 1);
  EXPECT_EQ(from_float<TypeParam>(-HUGE_VALF).bits, infinity | 0x8000u);
}

TYPED_TEST(Element, nan_with_only_low_payload_bits_stays_nan) {
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    const TypeParam narrow = from_float<TypeParam>(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(to_float(narrow))) << std::hex << bits;
    EXPECT_EQ(narrow.bits >> 15, bits >> 31);
  }
}

TEST(WithElement, refuses_types_other_than_single_lane_floats) {
  const auto ignore = [](auto) {};
  EXPECT_TRUE(with_element(kF16, ignore));
  EXPECT_FALSE(with_element({OPMUX_DTYPE_FLOAT, 64, 1}, ignore));
  EXPECT_FALSE(with_element({OPMUX_DTYPE_INT, 32, 1}, ignore));
  EXPECT_FALSE(with_element({OPMUX_DTYPE_FLOAT, 32, 4}, ignore));
}

}  // namespace
}  // namespace opmux::backends
