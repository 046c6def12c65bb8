#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/gelu_and_mul.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/simd/gate-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// v * P(X < v) for a standard normal X. The tail beyond |v| is exp(-v^2 / 2) times a slowly varying
// function, which is a polynomial in (|v| - 3) / (|v| + 3). This is accurate to 5 units in the last
// place of f32 and avoids cancellation for large negative values.
HWY_INLINE V gelu(V v) {
  constexpr float kTerms[] = {0.121513948f,    -0.20640263f,   0.123225063f,     -0.0462131873f,
                              0.00613172445f,  0.002904027f,   -0.000982597005f, -0.000338251994f,
                              0.000114344599f, 5.25168653e-05f};
  const F32 d;
  const V magnitude = hn::Min(hn::Abs(v), hn::Set(d, 20));  // The tail is zero beyond 20.
  const V three = hn::Set(d, 3);
  const V q = hn::Div(hn::Sub(magnitude, three), hn::Add(magnitude, three));
  V factor = hn::Set(d, kTerms[9]);
  for (int i = 8; i >= 0; --i) factor = hn::MulAdd(factor, q, hn::Set(d, kTerms[i]));
  const V exponent = hn::Mul(hn::Mul(magnitude, magnitude), hn::Set(d, -0.5f));
  const V beyond = hn::Mul(hn::Exp(d, exponent), factor);
  const V below = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), beyond, hn::Sub(hn::Set(d, 1), beyond));
  return hn::Mul(v, below);
}

// Uses (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)).
template <class T>
HWY_INLINE V gelu_tanh(Tag<T> tag, V v) {
  const F32 d;
  const V cubed = hn::Mul(hn::Mul(hn::Mul(v, v), v), hn::Set(d, 0.044715f));
  return times_sigmoid(tag, v, hn::Mul(hn::Add(v, cubed), hn::Set(d, 2 * 0.797884560802865f)));
}

int32_t run_gelu_and_mul(const plugin::Call& call) {
  return call.i64(2) == 1 ? gate_rows(call, [](auto tag, V v) { return gelu_tanh(tag, v); })
                          : gate_rows(call, [](auto, V v) { return gelu(v); });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_gelu_and_mul(plugin::Backend& backend) {
  add(backend,
      {.name = "gelu_and_mul",
       .signature = "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], "
                    "enum{none, tanh} approximate = none) where H2 == 2 * H",
       .alike = {dtype_of("x"), dtype_of("y")}},
      OPMUX_SIMD_VARIANTS(run_gelu_and_mul));
}

}  // namespace opmux::backends::simd
#endif
