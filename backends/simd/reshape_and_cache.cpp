#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/reshape_and_cache.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/common/checked_indices.hpp"
#include "backends/simd/copy-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Writes one head of all tokens of k or v to its cache, in token order, so that the later of two
// tokens with the same slot wins.
void write_head(const plugin::TensorArg& cache, const plugin::TensorArg& from, int64_t head,
                const Indices& slots, CopyFn copy) {
  const int64_t from_size = from.dtype().bits / 8, size = cache.dtype().bits / 8;
  for (int64_t t = 0; t < slots.count(); ++t) {
    const int64_t slot = slots[t], places = cache.dim(1);
    if (slot < 0) continue;
    const int64_t at = slot / places * cache.stride(0) + slot % places * cache.stride(1);
    copy(from.data<const char>() + (t * from.stride(0) + head * from.stride(1)) * from_size,
         cache.data<char>() + (at + head * cache.stride(2)) * size,
         static_cast<size_t>(cache.dim(3)));
  }
}

int32_t run_reshape_and_cache(const plugin::Call& call) {
  const plugin::TensorArg k_cache = call.tensor(0), v_cache = call.tensor(1), k = call.tensor(2),
                          v = call.tensor(3);
  const Indices slots(call.tensor(4).c());
  if (const Wrong wrong = wrong_slot(k_cache.c(), slots)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const CopyFn copy_k = copy_function(k.dtype(), k_cache.dtype());
  const CopyFn copy_v = copy_function(v.dtype(), v_cache.dtype());
  if (!copy_k || !copy_v) return decline_dtype(call);
  for_each_row(call, k.dim(1), slots.count() * (k.dim(2) + v.dim(2)), [&](int64_t head) {
    write_head(k_cache, k, head, slots, copy_k);
    write_head(v_cache, v, head, slots, copy_v);
  });
  return OPMUX_OK;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_reshape_and_cache(plugin::Backend& backend) {
  add(backend,
      {.name = "reshape_and_cache",
       .signature = "reshape_and_cache(inout Tensor k_cache[NB, BS, HKV, D], "
                    "inout Tensor v_cache[NB, BS, HKV, DV], Tensor k[T, HKV, D], "
                    "Tensor v[T, HKV, DV], Tensor slots[T])",
       .alike = {},
       .caps = plugin::Caps{}
                   .inner_contiguous("k_cache")
                   .inner_contiguous("v_cache")
                   .inner_contiguous("k")
                   .inner_contiguous("v")
                   .dtypes("slots", {plugin::i32, plugin::i64})},
      OPMUX_SIMD_VARIANTS(run_reshape_and_cache));
}

}  // namespace opmux::backends::simd
#endif
