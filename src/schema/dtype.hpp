#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

namespace opmux::schema {

/// A name and the number that it denotes.
struct Named {
  std::string_view name;
  int64_t number;
};

/// All named element types; `number` is DType::packed().
std::vector<Named> named_dtypes();
/// All names of device types: those of DLPack, their aliases such as "npu", and those of vendors;
/// `number` is Device::type. A type may occur several times.
std::vector<Named> named_devices();

}  // namespace opmux::schema

/// Conversions between f32 and the 16-bit float types. Narrowing rounds to nearest even.
namespace opmux::schema {

inline float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  if (is_nan) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float from_f16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  // Interpreted as f32, the shifted bits are too small by a factor of 2^112, also for subnormals.
  // The multiplication is exact.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

inline uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  constexpr uint32_t kInfinity = 0x7f800000u, kTooLarge = 0x477ff000u, kNormal = 0x38800000u;
  if (magnitude > kInfinity) return sign | 0x7e00u;
  if (magnitude >= kTooLarge) return sign | 0x7c00u;
  if (magnitude < kNormal) {
    // At 0.5 the spacing of f32 equals the spacing of f16 subnormals, so the addition rounds the
    // value to a multiple of the smallest f16 number.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u));
  }
  constexpr uint32_t kOtherExponent = (127u - 15u) << 23;
  magnitude = magnitude - kOtherExponent + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | magnitude >> 13);
}

}  // namespace opmux::schema
