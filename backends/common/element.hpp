// Element types of float tensors and their conversion to and from f32, bit-exact on every x86-64.
#pragma once

#include <opmux/abi.h>

#include <bit>
#include <cstdint>

namespace opmux::backends {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

inline float to_float(float value) { return value; }

inline float to_float(BF16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

inline float to_float(F16 value) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00) {  // infinity, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7f800000u | magnitude << 13);
  }
  if (magnitude < 0x0400) {  // zero and subnormals: multiples of 2^-24, exact in f32
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(float(magnitude) * 0x1p-24f));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + kRebias));
}

// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays NaN and becomes quiet.
template <class T>
T from_float(float value);

template <>
inline float from_float<float>(float value) {
  return value;
}

template <>
inline BF16 from_float<BF16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // Rounding up a NaN with a small payload would carry into the exponent and the sign.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {uint16_t(bits >> 16 | 0x0040u)};
  return {uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <>
inline F16 from_float<F16>(float value) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {uint16_t(sign | 0x7e00u | (magnitude >> 13 & 0x03ffu))};
  if (magnitude >= 0x477ff000u) return {uint16_t(sign | 0x7c00u)};  // 65520 and above
  if (magnitude < 0x38800000u) {
    // Below 2^-14: the last bit of a sum with 0.5 has the value 2^-24, so the addition rounds
    // correctly.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return {uint16_t(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000u))};
  }
  return {uint16_t(sign | ((magnitude - kRebias + 0x0fffu + (magnitude >> 13 & 1u)) >> 13))};
}

// Passes a C++ type as a function argument.
template <class T>
struct Tag {
  using type = T;
};

// Calls fn with the Tag of a float dtype's C++ type; returns false for any other dtype.
template <class Fn>
bool with_element(opmux_dtype dtype, Fn&& fn) {
  const int kind = dtype.lanes == 1 ? dtype.code << 8 | dtype.bits : -1;
  switch (kind) {
    case OPMUX_DTYPE_FLOAT << 8 | 32: return fn(Tag<float>{}), true;
    case OPMUX_DTYPE_FLOAT << 8 | 16: return fn(Tag<F16>{}), true;
    case OPMUX_DTYPE_BFLOAT << 8 | 16: return fn(Tag<BF16>{}), true;
    default: return false;
  }
}

}  // namespace opmux::backends
