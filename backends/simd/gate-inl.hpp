// Gated activations: y = activation(first half of a row) * second half.
#if defined(OPMUX_BACKENDS_SIMD_GATE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#undef OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_GATE_INL_HPP
#endif

#include "backends/simd/implementation.hpp"
#include "backends/simd/power_of_two.hpp"
#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// exp(-u), with an error of up to 2 + |u| / 9 units in the last place of f32. Infinite where the
// f32 result is; about 1e-38 for u >= 87.
HWY_INLINE V nearly_exp_of_minus(V u) {
  const F32 d;
  const V log2e = hn::Set(d, 1.44269504f);
  // The low bits of a number of this size are its integer part, which is the exponent of 2 here.
  const V shift = hn::Set(d, 0x1.8p23f + 126);
  const V clamped = hn::Max(hn::Min(u, hn::Set(d, 87)), hn::Set(d, -89));
  const V shifted = hn::NegMulAdd(clamped, log2e, shift);
  const V fraction = hn::NegMulAdd(clamped, log2e, hn::Sub(shift, shifted));
  // `shift` uses the exponent bias 126 instead of 127, so that the exponent never overflows; the
  // doubled coefficients compensate for it.
  const auto step = [&](V power, int term) {
    return hn::MulAdd(power, fraction, hn::Set(d, 2 * kPowerOfTwo[term]));
  };
  const V half = step(step(hn::Set(d, 2 * kPowerOfTwo[0]), 1), 2);
  const V power = step(step(step(half, 3), 4), 5);
  return hn::Mul(power, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(U32(), shifted))));
}

// Approximates a / b for b in [1, infinity]: a 16-lane division takes as long as 16 other
// instructions.
HWY_INLINE V nearly_divide(V a, V b) {
#if HWY_TARGET <= HWY_AVX3
  const V infinity = hn::Set(F32(), std::numeric_limits<float>::infinity());
  const V guess = hn::ApproximateReciprocal(b);
  const V better = hn::Mul(guess, hn::NegMulAdd(b, guess, hn::Set(F32(), 2)));
  return hn::Mul(a, hn::IfThenElseZero(hn::Lt(b, infinity), better));
#else
  return hn::Div(a, b);
#endif
}

// v / (1 + exp(-u)), as precise as T can represent. For -u >= 89 the exponential is infinite and
// the quotient zero; Highway's Exp is defined up to 104.
template <class T>
HWY_INLINE V times_sigmoid(Tag<T>, V v, V u) {
  const V one = hn::Set(F32(), 1);
  if constexpr (sizeof(T) == 2) {
    return nearly_divide(v, hn::Add(one, nearly_exp_of_minus(u)));
  } else {
    const V exponent = hn::Min(hn::Neg(u), hn::Set(F32(), 104));
    return hn::Div(v, hn::Add(one, hn::Exp(F32(), exponent)));
  }
}

template <class Activation>
int32_t gate_rows(const plugin::Call& call, const Activation& activation) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const size_t count = static_cast<size_t>(y.dim(-1));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T> tag) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    for_each_row(call, from.count(), x.dim(-1), [&](int64_t r) {
      const T* const gate = from[r];
      map(
          to[r], count, [&](V g, V factor) { return hn::Mul(activation(tag, g), factor); }, gate,
          gate + count);
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
