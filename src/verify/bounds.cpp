#include "verify/bounds.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "verify/small_floats.hpp"

namespace opmux::verify {
namespace {

/// Parameters of a binary floating-point format.
struct Format {
  int digits;    ///< bits of the significand
  int smallest;  ///< exponent of the smallest normal number
  double largest;
  bool infinities = true;  ///< false: results that are too large become the largest number
};

Format format_of(DType dtype) {
  if (const SmallFloat* const small = small_float(dtype)) {
    return {small->fraction_bits + 1, 1 - small->bias, small->largest, small->infinities};
  }
  if (dtype == f16) return {11, -14, 65504};
  if (dtype == bf16) return {8, -126, 0x1.fep127};
  return {24, -126, std::numeric_limits<float>::max()};
}

/// The distance between neighbouring numbers around `value`, a power of two.
double step(double value, const Format& format) {
  int exponent = format.smallest;  // also used for zero
  if (value != 0) exponent = std::max(std::ilogb(value), format.smallest);
  return std::ldexp(1.0, exponent - (format.digits - 1));
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = fraction * 0x1p-24;
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t to_half(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(value);
  int bits = 0;
  if (std::isnan(value)) {
    bits = 0x7e00;
  } else if (std::isinf(value)) {
    bits = 0x7c00;
  } else if (magnitude < 0x1p-14) {
    bits = static_cast<int>(magnitude * 0x1p24);
  } else {
    const int exponent = std::ilogb(magnitude);
    bits = (exponent + 15) << 10 | (static_cast<int>(std::ldexp(magnitude, 10 - exponent)) & 1023);
  }
  return static_cast<uint16_t>(sign | bits);
}

double read_integer(const std::byte* at, DType dtype) {
  const bool is_signed = dtype.code == OPMUX_DTYPE_INT;
  switch (dtype.bits) {
    case 4:  // a byte with two numbers
    case 8: return is_signed ? double(load<int8_t>(at)) : double(load<uint8_t>(at));
    case 16: return is_signed ? double(load<int16_t>(at)) : double(load<uint16_t>(at));
    case 32: return is_signed ? double(load<int32_t>(at)) : double(load<uint32_t>(at));
    default: return is_signed ? double(load<int64_t>(at)) : double(load<uint64_t>(at));
  }
}

void write_integer(std::byte* at, DType dtype, double value) {
  const auto wide =
      value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  std::memcpy(at, &wide, static_cast<size_t>(dtype.size_bytes()));
}

double clamped(double value, DType dtype) {
  if (dtype == boolean) return value != 0 ? 1 : 0;
  const int bits = dtype.bits * dtype.lanes;
  const int digits = dtype.code == OPMUX_DTYPE_INT ? bits - 1 : bits;
  // Limit to 62 bits, because 2^63 does not fit into int64_t. Test data has no numbers near it.
  const double high = std::ldexp(1.0, std::min(digits, 62)) - 1;
  return std::clamp(std::nearbyint(value), dtype.code == OPMUX_DTYPE_INT ? -high - 1 : 0.0, high);
}

}  // namespace

bool is_float(DType dtype) {
  return dtype == f32 || dtype == f16 || dtype == bf16 || small_float(dtype) != nullptr;
}

bool comparable(DType dtype) {
  if (dtype == f4_e2m1fn_x2) return true;
  if (dtype.lanes != 1) return false;
  if (is_float(dtype) || dtype == boolean) return true;
  const bool whole = dtype.code == OPMUX_DTYPE_INT || dtype.code == OPMUX_DTYPE_UINT;
  return whole && (dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
}

double unit_roundoff(DType dtype) {
  return is_float(dtype) ? std::ldexp(1.0, -format_of(dtype).digits) : 0;
}

double smallest(DType dtype) { return is_float(dtype) ? step(0, format_of(dtype)) : 1; }

double half_step(double value, DType dtype) {
  return is_float(dtype) ? step(value, format_of(dtype)) / 2 : 0;
}

namespace {

/// The usual formats, in a range in which all values are normal and none overflows.
struct NormalRange {
  DType dtype;
  int dropped;  ///< bits of the mantissa of a double that the format lacks
  double least, most;
};
constexpr std::array kNormalRanges{NormalRange{bf16, 45, 0x1p-126, 0x1p127},
                                   NormalRange{f16, 42, 0x1p-14, 0x1p15},
                                   NormalRange{f32, 29, 0x1p-126, 0x1p127}};

/// Rounds to nearest, ties to even, by the bits, because large tensors are rounded element by
/// element. Nullopt outside of the range.
std::optional<double> rounded_in_range(double value, DType dtype) {
  for (const NormalRange& range : kNormalRanges) {
    if (range.dtype != dtype) continue;
    const double size = std::abs(value);
    if (!(size >= range.least && size < range.most)) return {};
    const auto bits = std::bit_cast<uint64_t>(value);
    const uint64_t unit = uint64_t{1} << range.dropped;
    const uint64_t odd = bits >> range.dropped & 1;
    return std::bit_cast<double>((bits + (unit / 2 - 1) + odd) & ~(unit - 1));
  }
  return {};
}

}  // namespace

double rounded(double value, DType dtype) {
  if (const auto common = rounded_in_range(value, dtype)) return *common;
  if (!is_float(dtype)) return clamped(value, dtype);
  const Format format = format_of(dtype);
  if (std::isinf(value) && !format.infinities) return std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(value) || value == 0) return value;
  const double quantum = step(value, format);
  const double result = std::nearbyint(value / quantum) * quantum;
  if (std::abs(result) <= format.largest) return result;
  return std::copysign(format.infinities ? std::numeric_limits<double>::infinity() : format.largest,
                       value);
}

double read_element(const std::byte* at, DType dtype) {
  if (dtype == f32) return load<float>(at);
  if (dtype == f16) return from_half(load<uint16_t>(at));
  if (dtype == bf16) return std::bit_cast<float>(uint32_t{load<uint16_t>(at)} << 16);
  if (const SmallFloat* const small = small_float(dtype)) {
    return decoded(*small, load<uint8_t>(at));
  }
  return read_integer(at, dtype);
}

void write_element(std::byte* at, DType dtype, double value) {
  if (dtype == f32) {
    store(at, static_cast<float>(value));
  } else if (dtype == f16) {
    store(at, to_half(value));
  } else if (dtype == bf16) {
    // Write a fixed NaN, because the payload of a double NaN may be in the bits that are cut off.
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    store(at, std::isnan(value) ? uint16_t{0x7fc0} : static_cast<uint16_t>(bits >> 16));
  } else if (const SmallFloat* const small = small_float(dtype)) {
    store(at, encoded(*small, value));
  } else {
    write_integer(at, dtype, value);
  }
}

}  // namespace opmux::verify
