// Gated activations: the first half of a row, activated, times the second.
#if defined(OPMUX_BACKENDS_SIMD_GATE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#undef OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#endif

#include "backends/simd/implementation.hpp"
#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// v / (1 + exp(-u)). From 89 on the exponential is infinite and the quotient zero; Highway's is
// defined up to 104.
HWY_INLINE V times_sigmoid(V v, V u) {
  const F32 d;
  const V exponent = hn::Min(hn::Neg(u), hn::Set(d, 104));
  return hn::Div(v, hn::Add(hn::Set(d, 1), hn::Exp(d, exponent)));
}

template <class Activation>
int32_t gate_rows(const plugin::Call& call, const Activation& activation) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const size_t count = static_cast<size_t>(y.dim(-1));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    for_each_row(call, from.count(), x.dim(-1), [&](int64_t r) {
      const T* const gate = from[r];
      map(
          to[r], count, [&](V g, V factor) { return hn::Mul(activation(g), factor); }, gate,
          gate + count);
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
