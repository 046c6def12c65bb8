#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/rms_norm.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/simd/norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

int32_t run_rms_norm(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const NormOptions options(call);
  const size_t count = static_cast<size_t>(x.dim(-1));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    with_weight(options.weight, [&](const auto* weight) {
      for_each_row(call, from.count(), x.dim(-1),
                   [&](int64_t r) { rms_norm_row(from[r], to[r], count, weight, options); });
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_rms_norm(plugin::Backend& backend) {
  add(backend,
      {.name = "rms_norm",
       .signature = "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                    "float eps = 1e-6, bool round_before_weight = false)",
       .alike = {dtype_of("x"), dtype_of("y")}},
      OPMUX_SIMD_VARIANTS(run_rms_norm));
}

}  // namespace opmux::backends::simd
#endif
