#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/silu_and_mul.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/simd/gate-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

int32_t run_silu_and_mul(const plugin::Call& call) {
  return gate_rows(call, [](auto tag, V v) { return times_sigmoid(tag, v, v); });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_silu_and_mul(plugin::Backend& backend) {
  add(backend,
      {.name = "silu_and_mul",
       .signature = "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
       .alike = {dtype_of("x"), dtype_of("y")}},
      OPMUX_SIMD_VARIANTS(run_silu_and_mul));
}

}  // namespace opmux::backends::simd
#endif
