// The RMS norm of one row; shared by rms_norm and fused_add_rms_norm.
#if defined(OPMUX_BACKENDS_SIMD_NORM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_NORM_INL_HPP
#undef OPMUX_BACKENDS_SIMD_NORM_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_NORM_INL_HPP
#endif

#include <cmath>
#include <type_traits>

#include "backends/simd/implementation.hpp"
#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// The non-tensor arguments of both operators, and the weight.
struct NormOptions {
  explicit NormOptions(const plugin::Call& call)
      : weight(call.optional_tensor(2)),
        eps(static_cast<float>(call.f64(3, 1e-6))),
        round(call.boolean(4)) {}

  plugin::TensorArg weight;
  float eps;
  // Round normalized values to the weight's type (y's type without a weight) before weighting.
  bool round;
};

template <class T, class Weight>
void rms_norm_row(const T* x, T* y, size_t count, const Weight* weight,
                  const NormOptions& options) {
  const float squares = sum_over(x, count, [](V v, V sum) { return hn::MulAdd(v, v, sum); });
  const V factor = hn::Set(F32(), 1 / std::sqrt(squares / static_cast<float>(count) + options.eps));
  const auto normalize = [&](V v) { return hn::Mul(v, factor); };
  const auto weigh = [](V v, V w) { return hn::Mul(v, w); };
  if constexpr (std::is_void_v<Weight>) {
    map(y, count, normalize, x);  // Storing rounds the values.
  } else if (options.round) {
    map(y, count, [&](V v, V w) { return weigh(rounded<Weight>(normalize(v)), w); }, x, weight);
  } else {
    map(y, count, [&](V v, V w) { return weigh(normalize(v), w); }, x, weight);
  }
}

// Calls fn with a typed pointer to the weight, or with a null `const void*` if there is no weight.
template <class Fn>
bool with_weight(const plugin::TensorArg& weight, const Fn& fn) {
  if (!weight) return fn(static_cast<const void*>(nullptr)), true;
  return with_element(weight.dtype(),
                      [&]<class Weight>(Tag<Weight>) { fn(weight.data<const Weight>()); });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
