// Scalar code that the operators of this backend share: registration of variants, their flags, and
// the loop over rows.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/rows.hpp"
#include "backends/simd/targets.hpp"

namespace opmux::backends::simd {

using plugin::dtype_of;
using RunFn = int32_t (*)(const plugin::Call& call);

// Sizes of a dimension for which a kernel was written; `most` 0: no limit. It also computes others,
// but slower than the kernels that were written for those.
struct Range {
  std::string_view dim;
  int64_t least = 0, most = 0;
};

// How much less a kernel counts outside of its range: enough to come after the reference.
inline constexpr int32_t kOutOfRange = 120;

// One operator. Tensors named in `alike` must have the same dtype. All tensors are inner contiguous
// and f32, f16 or bf16 unless `caps` states otherwise by name.
struct Operator {
  std::string_view name, signature;
  plugin::Impl::Reads alike;
  plugin::Caps caps = plugin::Caps{}.inner_contiguous();
  uint64_t (*workspace)(const plugin::Call& call) = nullptr;
  bool batch_invariant = true;
  std::optional<Range> fast = {};  // Empty: everywhere.
};

// Deterministic and (unless `op` says otherwise) batch invariant because a row is always computed
// alone, by one thread, in a fixed order. Outputs are atomic because nothing can fail after the
// first write.
inline plugin::Impl implementation(const Operator& op, const Target& target) {
  plugin::Impl impl{op.name, target.variant};
  plugin::Caps caps = op.caps;
  if (op.fast) impl.hint(op.fast->dim, op.fast->least, op.fast->most, target.priority);
  impl.signature(op.signature)
      .priority(op.fast ? target.priority - kOutOfRange : target.priority)
      .flags(OPMUX_IMPL_ATOMIC_OUTPUTS | OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_CAPTURE_SAFE |
             (op.batch_invariant ? OPMUX_IMPL_BATCH_INVARIANT : 0))
      .caps(caps.dtypes({plugin::f32, plugin::f16, plugin::bf16})
                .device_type(OPMUX_DEVICE_CPU)
                .cpu_features(target.cpu_features));
  if (op.workspace) impl.workspace(op.workspace);
  return op.alike.size() == 0 ? impl : impl.same_dtype(op.alike);
}

// Adds one implementation for each compiled target; the RunFn arguments are null for targets that
// were not compiled.
inline void add(plugin::Backend& backend, const Operator& op, RunFn avx512, RunFn avx2,
                RunFn sse4) {
  const std::pair<const Target&, RunFn> variants[] = {
      {kAvx512, avx512}, {kAvx2, avx2}, {kSse4, sse4}};
  for (const auto& [target, run] : variants) {
    if (run) backend.add(implementation(op, target).run(run));
  }
}

// The run functions of all targets; use it after HWY_AFTER_NAMESPACE.
#define OPMUX_SIMD_VARIANTS(function) \
  HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), HWY_CHOOSE_SSE4(function)

inline int32_t decline_dtype(const plugin::Call& call) {
  return plugin::decline(call.error(), "simd.dtype",
                         "the simd backend does not support these dtypes");
}

// Calls fn with the Tag of the tensors' common dtype; declines if the dtypes differ or are not
// floats.
template <class Fn>
int32_t with_dtype(const plugin::Call& call, std::initializer_list<plugin::TensorArg> tensors,
                   const Fn& fn) {
  const opmux_dtype dtype = tensors.begin()->dtype();
  for (const plugin::TensorArg& tensor : tensors) {
    if (tensor && !tensor.is(dtype)) return decline_dtype(call);
  }
  return with_element(dtype, fn) ? int32_t{OPMUX_OK} : decline_dtype(call);
}

// Typed pointers to the rows of a tensor.
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

// Calls body(i) for i in [0, count), on several threads if the host lends them and there is enough
// work; each i costs as much as processing `elements` elements.
template <class Body>
void for_each_row(const plugin::Call& call, int64_t count, int64_t elements, const Body& body) {
  // In elements; less is finished before a thread wakes up.
  constexpr int64_t kWorthAThread = 32768;
  const int64_t block = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, elements));
  call.for_each((count + block - 1) / block, [&](int64_t b) {
    for (int64_t i = b * block; i < std::min(count, (b + 1) * block); ++i) body(i);
  });
}

}  // namespace opmux::backends::simd
