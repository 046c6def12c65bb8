#include "backends/common/checked_indices.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Slot s is position s % BS of block s / BS.
void write_token(const plugin::TensorArg& cache, const plugin::TensorArg& from, int64_t token,
                 int64_t slot) {
  const int64_t at = slot / cache.dim(1) * cache.stride(0) + slot % cache.dim(1) * cache.stride(1);
  for (int64_t head = 0; head < cache.dim(2); ++head) {
    copy_row(from.c(), token * from.stride(0) + head * from.stride(1), cache.c(),
             at + head * cache.stride(2), cache.dim(3));
  }
}

int32_t run_reshape_and_cache(const plugin::Call& call) {
  const plugin::TensorArg k_cache = call.tensor(0), v_cache = call.tensor(1), k = call.tensor(2),
                          v = call.tensor(3);
  const Indices slots(call.tensor(4).c());
  if (const Wrong wrong = wrong_slot(k_cache.c(), slots)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  for (int64_t t = 0; t < slots.count(); ++t) {
    const int64_t slot = slots[t];
    if (slot < 0) continue;
    write_token(k_cache, k, t, slot);
    write_token(v_cache, v, t, slot);
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl reshape_and_cache() {
  constexpr std::string_view kSignature =
      "reshape_and_cache(inout Tensor k_cache[NB, BS, HKV, D], "
      "inout Tensor v_cache[NB, BS, HKV, DV], Tensor k[T, HKV, D], Tensor v[T, HKV, DV], "
      "Tensor slots[T])";
  plugin::Caps caps;
  caps.dtypes("slots", {plugin::i32, plugin::i64});
  return scalar("reshape_and_cache", kSignature, caps).run(run_reshape_and_cache);
}

}  // namespace opmux::backends::reference
