#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/rms_norm.cpp"
#include <hwy/foreach_target.h>  // this file again, once per target

#include <hwy/highway.h>

#include <cmath>
#include <optional>
#include <type_traits>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Four sums in flight hide the latency of the addition.
template <class T>
float sum_of_squares(const T* x, size_t count) {
  const size_t lanes = hn::Lanes(F32());
  V a = hn::Zero(F32()), b = a, c = a, d = a;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const V v0 = load(x + i), v1 = load(x + i + lanes);
    const V v2 = load(x + i + 2 * lanes), v3 = load(x + i + 3 * lanes);
    a = hn::MulAdd(v0, v0, a);
    b = hn::MulAdd(v1, v1, b);
    c = hn::MulAdd(v2, v2, c);
    d = hn::MulAdd(v3, v3, d);
  }
  for (; i + lanes <= count; i += lanes) {
    const V v = load(x + i);
    a = hn::MulAdd(v, v, a);
  }
  const V rest = load_part(x + i, count - i);
  b = hn::MulAdd(rest, rest, b);
  return hn::GetLane(hn::SumOfLanes(F32(), hn::Add(hn::Add(a, b), hn::Add(c, d))));
}

// To the nearest value of type T and back.
template <class T>
HWY_INLINE V rounded(V value) {
  T lanes[hn::MaxLanes(F32())];
  store(value, lanes);
  return load(lanes);
}

// Weight void: there is none. kRound: normalized values are rounded before they meet the weight, to
// its type or else to that of x.
template <class T, class Weight, bool kRound>
void rms_norm_row(const void* from, void* to, const void* weight, size_t count, float eps) {
  constexpr bool kHasWeight = !std::is_void_v<Weight>;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  const float mean = sum_of_squares(x, count) / static_cast<float>(count);
  const V factor = hn::Set(F32(), 1 / std::sqrt(mean + eps));
  const auto normalize = [&](V v) {
    v = hn::Mul(v, factor);
    return kRound ? rounded<std::conditional_t<kHasWeight, Weight, T>>(v) : v;
  };
  const Weight* w = static_cast<const Weight*>(weight);
  const size_t lanes = hn::Lanes(F32());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V v = normalize(load(x + i));
    if constexpr (kHasWeight) v = hn::Mul(v, load(w + i));
    store(v, y + i);
  }
  V v = normalize(load_part(x + i, count - i));
  if constexpr (kHasWeight) v = hn::Mul(v, load_part(w + i, count - i));
  store_part(v, y + i, count - i);
}

using RowFn = void (*)(const void* x, void* y, const void* weight, size_t count, float eps);

template <class T, class Weight>
RowFn row_function_of(bool round) {
  return round ? rms_norm_row<T, Weight, true> : rms_norm_row<T, Weight, false>;
}

// Null if there is no code for these types.
RowFn row_function(opmux_dtype x, std::optional<opmux_dtype> weight, bool round) {
  RowFn fn = nullptr;
  with_element(x, [&]<class T>(Tag<T>) {
    if (!weight) {
      fn = row_function_of<T, void>(round);
    } else {
      with_element(*weight,
                   [&]<class Weight>(Tag<Weight>) { fn = row_function_of<T, Weight>(round); });
    }
  });
  return fn;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {
namespace {

using RowFn = void (*)(const void* x, void* y, const void* weight, size_t count, float eps);
using SelectFn = RowFn (*)(opmux_dtype x, std::optional<opmux_dtype> weight, bool round);

int32_t run(const plugin::Call& call, SelectFn select) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.optional_tensor(2);
  const auto weight_dtype = weight ? std::optional(weight.dtype()) : std::nullopt;
  const RowFn fn = y.is(x.dtype()) ? select(x.dtype(), weight_dtype, call.boolean(4)) : nullptr;
  if (!fn) return decline_dtype(call);
  const void* factors = weight ? weight.data() : nullptr;
  const size_t count = static_cast<size_t>(x.dim(-1));
  const float eps = static_cast<float>(call.f64(3, 1e-6));
  for_each_row(call, y, x, [&](const void* from, void* to) { fn(from, to, factors, count, eps); });
  return OPMUX_OK;
}

void add(plugin::Backend& backend, const Target& target, SelectFn select) {
  constexpr std::string_view kSignature =
      "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6, "
      "bool round_before_weight = false)";
  if (!select) return;
  backend.add(
      implementation("rms_norm", kSignature, target).run([select](const plugin::Call& call) {
        return run(call, select);
      }));
}

}  // namespace

void add_rms_norm(plugin::Backend& backend) {
  add(backend, kAvx512, HWY_CHOOSE_AVX3(row_function));
  add(backend, kAvx2, HWY_CHOOSE_AVX2(row_function));
  add(backend, kSse4, HWY_CHOOSE_SSE4(row_function));
}

}  // namespace opmux::backends::simd
#endif
