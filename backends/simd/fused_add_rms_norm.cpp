#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/fused_add_rms_norm.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/simd/norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

int32_t run_fused_add_rms_norm(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(0), residual = call.tensor(1);
  const NormOptions options(call);
  const size_t count = static_cast<size_t>(x.dim(-1));
  return with_dtype(call, {x, residual}, [&]<class T>(Tag<T>) {
    const RowsOf<T> x_rows(x), residual_rows(residual);
    with_weight(options.weight, [&](const auto* weight) {
      for_each_row(call, x_rows.count(), x.dim(-1), [&](int64_t r) {
        T* const row = x_rows[r];
        T* const sum = residual_rows[r];
        map(sum, count, [](V a, V b) { return hn::Add(a, b); }, row, sum);
        rms_norm_row(sum, row, count, weight, options);
      });
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_fused_add_rms_norm(plugin::Backend& backend) {
  add(backend,
      {.name = "fused_add_rms_norm",
       .signature = "fused_add_rms_norm(inout Tensor x[..., H], inout Tensor residual[..., H], "
                    "Tensor? weight[H], float eps = 1e-6, bool round_before_weight = false)",
       .alike = {dtype_of("x"), dtype_of("residual")}},
      OPMUX_SIMD_VARIANTS(run_fused_add_rms_norm));
}

}  // namespace opmux::backends::simd
#endif
