// Loads and stores of f32 vectors in any float type, compiled once per target. All targets round to
// nearest even like backends/common/element.hpp, which Highway's conversions do not.
#if defined(OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#undef OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_VECTORS_INL_HPP
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/common/element.hpp"
#include "backends/common/rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using V = hn::Vec<F32>;

// Targets from AVX2 on convert f16 in hardware. Highway gives better targets lower numbers.
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
// The bits of the nearest bf16, in the lower half of each lane.
HWY_INLINE hn::Vec<U32> to_bf16(V value) {
  const U32 d;
  const auto bits = hn::BitCast(d, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff))));
  const auto quiet = hn::Or(high, hn::Set(d, 0x40));
  return choose(hn::RebindMask(d, hn::IsNaN(value)), quiet, rounded);
}
HWY_INLINE void store(V value, BF16* to) { store_u16(to_bf16(value), to); }

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
  // Below 2^-14, adding 0.5 rounds to a multiple of 2^-24.
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

// Loads or stores the first `count` lanes. Memory past them is not accessed; the other lanes load
// as zero.
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

// Rounds to the nearest value of type T, as f32.
template <class T>
HWY_INLINE V rounded(V value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, BF16>) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(to_bf16(value)));
  } else {
    T lanes[hn::MaxLanes(F32())];
    store(value, lanes);
    return load(lanes);
  }
}

// Calls whole(i) at the start of every full vector of `count` elements, then part(i, rest) for the
// remaining elements, if any.
template <class Whole, class Part>
HWY_INLINE void for_each_vector(size_t count, const Whole& whole, const Part& part) {
  const size_t lanes = hn::Lanes(F32());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) whole(i);
  if (i < count) part(i, count - i);
}

// y[i] = fn(x[i]...) for all i < count.
template <class Y, class Fn, class... X>
HWY_INLINE void map(Y* y, size_t count, const Fn& fn, const X*... x) {
  for_each_vector(
      count, [&](size_t i) { store(fn(load(x + i)...), y + i); },
      [&](size_t i, size_t rest) { store_part(fn(load_part(x + i, rest)...), y + i, rest); });
}

// The sum over i < count of a term of x[i]; term(v, sum) returns sum plus the term. Four
// accumulators hide the latency of the addition.
template <class T, class Term>
HWY_INLINE float sum_over(const T* x, size_t count, const Term& term) {
  const size_t lanes = hn::Lanes(F32());
  V a = hn::Zero(F32()), b = a, c = a, d = a;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = term(load(x + i), a);
    b = term(load(x + i + lanes), b);
    c = term(load(x + i + 2 * lanes), c);
    d = term(load(x + i + 3 * lanes), d);
  }
  for (; i + lanes <= count; i += lanes) a = term(load(x + i), a);
  if (i < count) {
    // Lanes past the end must add nothing, even if the term of zero is not zero.
    const V added = term(load_part(x + i, count - i), hn::Zero(F32()));
    b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(F32(), count - i), added));
  }
  return hn::GetLane(hn::SumOfLanes(F32(), hn::Add(hn::Add(a, b), hn::Add(c, d))));
}

// The maximum of term(x[i]) over i < count; -inf if count is 0. If a term is NaN, the result may be
// NaN or the maximum of some of the other terms.
template <class T, class Term>
HWY_INLINE float max_over(const T* x, size_t count, const Term& term) {
  const V lowest = hn::Set(F32(), -std::numeric_limits<float>::infinity());
  V largest = lowest;
  for_each_vector(
      count, [&](size_t i) { largest = hn::Max(largest, term(load(x + i))); },
      [&](size_t i, size_t rest) {
        const V last = term(load_part(x + i, rest));
        largest = hn::Max(largest, hn::IfThenElse(hn::FirstN(F32(), rest), last, lowest));
      });
  return hn::GetLane(hn::MaxOfLanes(F32(), largest));
}

// exp(v) for v up to 104; Highway's Exp treats NaN as a large negative number.
HWY_INLINE V exp_or_nan(V v) { return hn::IfThenElse(hn::IsNaN(v), v, hn::Exp(F32(), v)); }

// The elements of a 1-D tensor, with the dtype checked at every load. For arguments that are a
// small part of the work, this avoids one more template parameter.
class AnyFloats {
 public:
  // Without a tensor, every element is `if_absent`.
  AnyFloats(const opmux_tensor* tensor, float if_absent) : if_absent_(if_absent) {
    if (!tensor) return;
    first_ = first_element<const char>(*tensor);
    dtype_ = tensor->dtype;
  }
  HWY_INLINE V load_at(size_t i) const {
    return dispatch([&](const auto* from) { return load(from + i); });
  }
  HWY_INLINE V load_part_at(size_t i, size_t count) const {
    return dispatch([&](const auto* from) { return load_part(from + i, count); });
  }
  void widen(int64_t first, size_t count, float* to) const {
    const size_t at = static_cast<size_t>(first);
    for_each_vector(
        count, [&](size_t i) { store(load_at(at + i), to + i); },
        [&](size_t i, size_t rest) { store_part(load_part_at(at + i, rest), to + i, rest); });
  }

 private:
  template <class Fn>
  HWY_INLINE V dispatch(const Fn& fn) const {
    if (!first_) return hn::Set(F32(), if_absent_);
    if (dtype_.bits == 32) return fn(reinterpret_cast<const float*>(first_));
    if (dtype_.code == OPMUX_DTYPE_BFLOAT) return fn(reinterpret_cast<const BF16*>(first_));
    return fn(reinterpret_cast<const F16*>(first_));
  }

  const char* first_ = nullptr;
  opmux_dtype dtype_{};
  float if_absent_;
};

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
