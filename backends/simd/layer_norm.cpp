#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/layer_norm.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include <cmath>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Two passes: the variance is computed from the centred values, so that a large mean costs no
// precision.
template <class T>
void layer_norm_row(const T* x, T* y, size_t count, const AnyFloats& weight, const AnyFloats& bias,
                    float eps) {
  const float size = static_cast<float>(count);
  const F32 d;
  const V mean = hn::Set(d, sum_over(x, count, [](V v, V sum) { return hn::Add(sum, v); }) / size);
  const float squares = sum_over(x, count, [&](V v, V sum) {
    const V centred = hn::Sub(v, mean);
    return hn::MulAdd(centred, centred, sum);
  });
  const V factor = hn::Set(d, 1 / std::sqrt(squares / size + eps));
  const auto normalize = [&](V v, V w, V b) {
    return hn::MulAdd(hn::Mul(hn::Sub(v, mean), factor), w, b);
  };
  for_each_vector(
      count,
      [&](size_t i) { store(normalize(load(x + i), weight.load_at(i), bias.load_at(i)), y + i); },
      [&](size_t i, size_t rest) {
        const V w = weight.load_part_at(i, rest), b = bias.load_part_at(i, rest);
        store_part(normalize(load_part(x + i, rest), w, b), y + i, rest);
      });
}

int32_t run_layer_norm(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.optional_tensor(2),
                          bias = call.optional_tensor(3);
  const AnyFloats weights(weight ? &weight.c() : nullptr, 1), added(bias ? &bias.c() : nullptr, 0);
  const size_t count = static_cast<size_t>(x.dim(-1));
  const float eps = static_cast<float>(call.f64(4, 1e-5));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    for_each_row(call, from.count(), x.dim(-1),
                 [&](int64_t r) { layer_norm_row(from[r], to[r], count, weights, added, eps); });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_layer_norm(plugin::Backend& backend) {
  add(backend,
      {.name = "layer_norm",
       .signature = "layer_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                    "Tensor? bias[H], float eps = 1e-5)",
       .alike = {dtype_of("x"), dtype_of("y")}},
      OPMUX_SIMD_VARIANTS(run_layer_norm));
}

}  // namespace opmux::backends::simd
#endif
