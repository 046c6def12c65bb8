// Searches in rows of floats where NaN counts as -inf: see backends/common/descending.hpp.
#if defined(OPMUX_BACKENDS_SIMD_ORDER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_ORDER_INL_HPP
#undef OPMUX_BACKENDS_SIMD_ORDER_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_ORDER_INL_HPP
#endif

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

HWY_INLINE V rank_values(V v) {
  const V lowest = hn::Set(F32(), -std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::IsNaN(v), lowest, v);
}

// The first i < count for which test(x[i]), a mask of lanes, is true; count if it is never true.
template <class T, class Test>
HWY_INLINE size_t find_first(const T* x, size_t count, const Test& test) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, test(load(x + i)));
    if (at >= 0) return i + static_cast<size_t>(at);
  }
  if (i == count) return count;
  const auto found = hn::And(hn::FirstN(d, count - i), test(load_part(x + i, count - i)));
  const intptr_t at = hn::FindFirstTrue(d, found);
  return at >= 0 ? i + static_cast<size_t>(at) : count;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
