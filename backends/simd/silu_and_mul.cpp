#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/silu_and_mul.cpp"
#include <hwy/foreach_target.h>  // this file again, once per target

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// From 89 on the exponential is infinite and the quotient zero; Highway's is defined up to 104.
HWY_INLINE V silu(V v) {
  const F32 d;
  const V exponent = hn::Min(hn::Neg(v), hn::Set(d, 104));
  return hn::Div(v, hn::Add(hn::Set(d, 1), hn::Exp(d, exponent)));
}

template <class T>
void silu_and_mul_row(const void* from, void* to, size_t count) {
  const T* gate = static_cast<const T*>(from);
  const T* factor = gate + count;
  T* y = static_cast<T*>(to);
  const size_t lanes = hn::Lanes(F32());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    store(hn::Mul(silu(load(gate + i)), load(factor + i)), y + i);
  }
  const size_t rest = count - i;
  store_part(hn::Mul(silu(load_part(gate + i, rest)), load_part(factor + i, rest)), y + i, rest);
}

// Null if there is no code for this type.
auto row_function(opmux_dtype x) {
  void (*fn)(const void* x, void* y, size_t count) = nullptr;
  with_element(x, [&]<class T>(Tag<T>) { fn = silu_and_mul_row<T>; });
  return fn;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {
namespace {

using RowFn = void (*)(const void* x, void* y, size_t count);
using SelectFn = RowFn (*)(opmux_dtype x);

int32_t run(const plugin::Call& call, SelectFn select) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const RowFn fn = y.is(x.dtype()) ? select(x.dtype()) : nullptr;
  if (!fn) return decline_dtype(call);
  const size_t count = static_cast<size_t>(y.dim(-1));
  for_each_row(call, y, x, [&](const void* from, void* to) { fn(from, to, count); });
  return OPMUX_OK;
}

void add(plugin::Backend& backend, const Target& target, SelectFn select) {
  constexpr std::string_view kSignature =
      "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H";
  if (!select) return;
  backend.add(
      implementation("silu_and_mul", kSignature, target).run([select](const plugin::Call& call) {
        return run(call, select);
      }));
}

}  // namespace

void add_silu_and_mul(plugin::Backend& backend) {
  add(backend, kAvx512, HWY_CHOOSE_AVX3(row_function));
  add(backend, kAvx2, HWY_CHOOSE_AVX2(row_function));
  add(backend, kSse4, HWY_CHOOSE_SSE4(row_function));
}

}  // namespace opmux::backends::simd
#endif
