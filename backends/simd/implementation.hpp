// What the operators of this backend share outside of vector code: a table of variants, promises,
// and the loop over rows.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "backends/common/rows.hpp"
#include "backends/simd/targets.hpp"

namespace opmux::backends::simd {

using plugin::dtype_of;
using RunFn = int32_t (*)(const plugin::Call& call);

// One operator. Tensors named in `alike` have one dtype; all are inner contiguous and f32, f16 or
// bf16 unless `caps` says something else of them by name.
struct Operator {
  std::string_view name, signature;
  plugin::Impl::Reads alike;
  plugin::Caps caps = plugin::Caps{}.inner_contiguous();
  uint64_t (*workspace)(const plugin::Call& call) = nullptr;
  bool batch_invariant = true;
};

// Deterministic and mostly batch invariant because a row is always computed alone, by one thread,
// in one order; nothing can fail once the first element is written.
inline plugin::Impl implementation(const Operator& op, const Target& target) {
  plugin::Impl impl{op.name, target.variant};
  plugin::Caps caps = op.caps;
  impl.signature(op.signature)
      .priority(target.priority)
      .flags(OPMUX_IMPL_ATOMIC_OUTPUTS | OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_CAPTURE_SAFE |
             (op.batch_invariant ? OPMUX_IMPL_BATCH_INVARIANT : 0))
      .caps(caps.dtypes({plugin::f32, plugin::f16, plugin::bf16})
                .device_type(OPMUX_DEVICE_CPU)
                .cpu_features(target.cpu_features));
  if (op.workspace) impl.workspace(op.workspace);
  return op.alike.size() == 0 ? impl : impl.same_dtype(op.alike);
}

// Adds one implementation for each target that was compiled; `run` is the function of that target.
inline void add(plugin::Backend& backend, const Operator& op, RunFn avx512, RunFn avx2,
                RunFn sse4) {
  const std::pair<const Target&, RunFn> variants[] = {
      {kAvx512, avx512}, {kAvx2, avx2}, {kSse4, sse4}};
  for (const auto& [target, run] : variants) {
    if (run) backend.add(implementation(op, target).run(run));
  }
}

// The functions of all targets, from behind HWY_AFTER_NAMESPACE.
#define OPMUX_SIMD_VARIANTS(function) \
  HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), HWY_CHOOSE_SSE4(function)

inline int32_t decline_dtype(const plugin::Call& call) {
  return plugin::decline(call.error(), "simd.dtype", "no code for these dtypes");
}

// Calls fn with the Tag of the tensors' one dtype; declines if they differ or are no floats.
template <class Fn>
int32_t with_dtype(const plugin::Call& call, std::initializer_list<plugin::TensorArg> tensors,
                   const Fn& fn) {
  const opmux_dtype dtype = tensors.begin()->dtype();
  for (const plugin::TensorArg& tensor : tensors) {
    if (tensor && !tensor.is(dtype)) return decline_dtype(call);
  }
  return with_element(dtype, fn) ? int32_t{OPMUX_OK} : decline_dtype(call);
}

// The first elements of a tensor's rows of type T.
template <class T>
class RowsOf {
 public:
  explicit RowsOf(const plugin::TensorArg& tensor, int inner = 1)
      : rows_(tensor.c(), inner), first_(tensor.data<T>()) {}
  int64_t count() const { return rows_.count(); }
  T* operator[](int64_t row) const { return first_ + rows_.offset(row); }

 private:
  Rows rows_;
  T* first_;
};

// Calls body(i) for i in [0, count), several at a time on several threads if the host lent them and
// there is enough to do: each i costs as much as `elements` elements.
template <class Body>
void for_each_row(const plugin::Call& call, int64_t count, int64_t elements, const Body& body) {
  constexpr int64_t kWorthAThread = 32768;  // elements: less is done before a thread wakes up
  const int64_t block = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, elements));
  call.for_each((count + block - 1) / block, [&](int64_t b) {
    for (int64_t i = b * block; i < std::min(count, (b + 1) * block); ++i) body(i);
  });
}

}  // namespace opmux::backends::simd
