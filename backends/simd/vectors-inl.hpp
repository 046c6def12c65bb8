// Vectors of f32 from and to memory of any float type, once per target. Rounds to nearest even on
// every target, as backends/common/element.hpp does, which Highway's own conversions do not.
#if defined(OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#undef OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/common/element.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using V = hn::Vec<F32>;

// Targets from AVX2 on convert f16 in hardware; Highway numbers the better ones lower.
#define OPMUX_SIMD_HAS_F16C (HWY_TARGET <= HWY_AVX2)

HWY_INLINE hn::Vec<U32> load_u16(const void* from) {
  return hn::PromoteTo(U32(), hn::LoadU(U16(), static_cast<const uint16_t*>(from)));
}
HWY_INLINE void store_u16(hn::Vec<U32> bits, void* to) {
  const auto narrow = hn::DemoteTo(U16(), hn::BitCast(I32(), bits));
  hn::StoreU(narrow, U16(), static_cast<uint16_t*>(to));
}
HWY_INLINE hn::Vec<U32> choose(hn::Mask<U32> mask, hn::Vec<U32> yes, hn::Vec<U32> no) {
  return hn::IfThenElse(mask, yes, no);
}

HWY_INLINE V load(const float* from) { return hn::LoadU(F32(), from); }
HWY_INLINE void store(V value, float* to) { hn::StoreU(value, F32(), to); }

HWY_INLINE V load(const BF16* from) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(load_u16(from)));
}
HWY_INLINE void store(V value, BF16* to) {
  const U32 d;
  const auto bits = hn::BitCast(d, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff))));
  const auto quiet = hn::Or(high, hn::Set(d, 0x40));
  store_u16(choose(hn::RebindMask(d, hn::IsNaN(value)), quiet, rounded), to);
}

#if OPMUX_SIMD_HAS_F16C

using Half = hn::Rebind<hwy::float16_t, F32>;

HWY_INLINE V load(const F16* from) {
  return hn::PromoteTo(F32(), hn::LoadU(Half(), reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE void store(V value, F16* to) {
  hn::StoreU(hn::DemoteTo(Half(), value), Half(), reinterpret_cast<hwy::float16_t*>(to));
}

#else

HWY_INLINE V load(const F16* from) {
  const U32 d;
  const auto half = load_u16(from);
  const auto magnitude = hn::And(half, hn::Set(d, 0x7fff));
  const auto wide = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(wide, hn::Set(d, (127 - 15) << 23));
  const auto special = hn::Or(wide, hn::Set(d, 0x7f800000));
  const auto count = hn::ConvertTo(F32(), hn::BitCast(I32(), magnitude));
  const auto small = hn::BitCast(d, hn::Mul(count, hn::Set(F32(), 0x1p-24f)));
  auto bits = choose(hn::Gt(magnitude, hn::Set(d, 0x7bff)), special, normal);
  bits = choose(hn::Lt(magnitude, hn::Set(d, 0x0400)), small, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000)));
  return hn::BitCast(F32(), hn::Or(bits, sign));
}
HWY_INLINE void store(V value, F16* to) {
  const U32 d;
  const auto bits = hn::BitCast(d, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
  const auto shifted = hn::ShiftRight<13>(magnitude);
  const auto odd = hn::And(shifted, hn::Set(d, 1));
  const auto rebased = hn::Sub(magnitude, hn::Set(d, (127 - 15) << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(d, 0x0fff))));
  // Below 2^-14 the addition of 0.5 rounds to a multiple of 2^-24.
  const auto sum = hn::Add(hn::BitCast(F32(), magnitude), hn::Set(F32(), 0.5f));
  const auto small = hn::Sub(hn::BitCast(d, sum), hn::Set(d, 0x3f000000));
  const auto nan = hn::Or(hn::And(shifted, hn::Set(d, 0x03ff)), hn::Set(d, 0x7e00));
  auto half = choose(hn::Lt(magnitude, hn::Set(d, 0x38800000)), small, normal);
  half = choose(hn::Gt(magnitude, hn::Set(d, 0x477fefff)), hn::Set(d, 0x7c00), half);
  half = choose(hn::Gt(magnitude, hn::Set(d, 0x7f800000)), nan, half);
  store_u16(hn::Or(half, sign), to);
}

#endif
#undef OPMUX_SIMD_HAS_F16C

// The same for the first `count` lanes; the others are zero, and are not touched in memory.
template <class T>
HWY_INLINE V load_part(const T* from, size_t count) {
  T lanes[hn::MaxLanes(F32())] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return load(lanes);
}
template <class T>
HWY_INLINE void store_part(V value, T* to, size_t count) {
  T lanes[hn::MaxLanes(F32())];
  store(value, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
