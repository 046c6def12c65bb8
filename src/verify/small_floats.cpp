#include "verify/small_floats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace opmux::verify {
namespace {

constexpr uint8_t kSign = 0x80;

constexpr std::array kSmallFloats{
    SmallFloat{f8_e4m3fn, 3, 7, 448, false, true},
    SmallFloat{f8_e4m3fnuz, 3, 8, 240, false, false},
    SmallFloat{f8_e5m2, 2, 15, 57344, true, true},
    SmallFloat{f8_e5m2fnuz, 2, 16, 57344, false, false},
};

bool is_nan(const SmallFloat& type, uint8_t bits) {
  if (!type.negative_zero) return bits == kSign;
  const int magnitude = bits & 0x7f;
  return type.infinities ? magnitude > 0x7c : magnitude == 0x7f;
}

}  // namespace

const SmallFloat* small_float(DType dtype) {
  for (const SmallFloat& type : kSmallFloats) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

double decoded(const SmallFloat& type, uint8_t bits) {
  if (is_nan(type, bits)) return std::numeric_limits<double>::quiet_NaN();
  const int magnitude = bits & 0x7f;
  const int fraction = magnitude & ((1 << type.fraction_bits) - 1);
  const int exponent = magnitude >> type.fraction_bits;
  double value = 0;
  if (type.infinities && magnitude == 0x7c) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - type.bias - type.fraction_bits);
  } else {
    value =
        std::ldexp((1 << type.fraction_bits) + fraction, exponent - type.bias - type.fraction_bits);
  }
  return (bits & kSign) != 0 ? -value : value;
}

uint8_t encoded(const SmallFloat& type, double value) {
  if (std::isnan(value)) return type.negative_zero ? 0x7f : kSign;
  const bool minus = std::signbit(value) && (value != 0 || type.negative_zero);
  int bits = 0;
  if (std::isinf(value)) {
    bits = 0x7c;
  } else if (value != 0) {
    const int exponent = std::max(std::ilogb(value), 1 - type.bias);
    // A subnormal number has no leading 1, so its fraction is smaller than 2^fraction_bits.
    const auto digits =
        static_cast<int>(std::ldexp(std::abs(value), type.fraction_bits - exponent));
    bits = ((exponent + type.bias - 1) << type.fraction_bits) + digits;
  }
  return static_cast<uint8_t>(bits | (minus ? kSign : 0));
}

double decoded_e2m1(int bits) {
  constexpr std::array kMagnitudes{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  const double value = kMagnitudes[static_cast<size_t>(bits & 7)];
  return (bits & 8) != 0 ? -value : value;
}

}  // namespace opmux::verify
