#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/softmax.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// A row in which every element is -inf becomes zeros. The maximum may drop a NaN, but the sum, and
// with it the row, still becomes NaN. The same holds for +inf, because inf - inf is NaN.
template <class T>
void softmax_row(const T* x, T* y, size_t count, float factor) {
  constexpr size_t kMost = 4096;  // Exponentials kept on the stack; longer rows compute them twice.
  float kept[kMost];
  const V scale = hn::Set(F32(), factor);
  const float largest = max_over(x, count, [&](V v) { return hn::Mul(v, scale); });
  const V shift = hn::Set(F32(), std::isinf(largest) && largest < 0 ? 0 : largest);
  const auto power = [&](V v) { return exp_or_nan(hn::Sub(hn::Mul(v, scale), shift)); };
  const auto inverse = [](float sum) { return hn::Set(F32(), sum == 0 ? 0 : 1 / sum); };
  if (std::is_same_v<T, float> || count <= kMost) {
    float* powers = kept;
    if constexpr (std::is_same_v<T, float>) powers = y;
    map(powers, count, power, x);
    const V share = inverse(sum_over(powers, count, [](V v, V sum) { return hn::Add(sum, v); }));
    map(y, count, [&](V v) { return hn::Mul(v, share); }, powers);
  } else {
    const V share = inverse(sum_over(x, count, [&](V v, V sum) { return hn::Add(sum, power(v)); }));
    map(y, count, [&](V v) { return hn::Mul(power(v), share); }, x);
  }
}

int32_t run_softmax(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const size_t count = static_cast<size_t>(x.dim(-1));
  const float scale = static_cast<float>(call.f64(2, 1));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    for_each_row(call, from.count(), x.dim(-1),
                 [&](int64_t r) { softmax_row(from[r], to[r], count, scale); });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_softmax(plugin::Backend& backend) {
  add(backend,
      {.name = "softmax",
       .signature = "softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)",
       .alike = {dtype_of("x"), dtype_of("y")}},
      OPMUX_SIMD_VARIANTS(run_softmax));
}

}  // namespace opmux::backends::simd
#endif
