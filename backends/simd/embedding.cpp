#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/embedding.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/common/checked_indices.hpp"
#include "backends/simd/copy-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

int32_t run_embedding(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), weight = call.tensor(1);
  const Indices ids(call.tensor(2).c());
  if (const Wrong wrong = wrong_id(weight.c(), ids)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const CopyFn copy = copy_function(weight.dtype(), y.dtype());
  if (!copy) return decline_dtype(call);
  const Rows to(y.c());
  const int64_t from_size = weight.dtype().bits / 8, to_size = y.dtype().bits / 8;
  for_each_row(call, ids.count(), y.dim(-1), [&](int64_t t) {
    copy(weight.data<const char>() + ids[t] * weight.stride(0) * from_size,
         y.data<char>() + to.offset(t) * to_size, static_cast<size_t>(y.dim(-1)));
  });
  return OPMUX_OK;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_embedding(plugin::Backend& backend) {
  add(backend,
      {.name = "embedding",
       .signature = "embedding(out Tensor y[..., H], Tensor weight[V, H], Tensor ids[...])",
       .alike = {},
       .caps = plugin::Caps{}.inner_contiguous("y").inner_contiguous("weight").dtypes(
           "ids", {plugin::i32, plugin::i64})},
      OPMUX_SIMD_VARIANTS(run_embedding));
}

}  // namespace opmux::backends::simd
#endif
