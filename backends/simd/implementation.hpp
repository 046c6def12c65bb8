// What the operators of this backend share outside of vector code: capabilities, promises, rows.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <string_view>

#include "backends/common/rows.hpp"
#include "backends/simd/targets.hpp"

namespace opmux::backends::simd {

// Deterministic and batch invariant because a row is always computed alone, by one thread, in one
// order; nothing can fail once the first element is written.
inline plugin::Impl implementation(std::string_view op, std::string_view signature,
                                   const Target& target) {
  plugin::Impl impl{op, target.variant};
  impl.signature(signature)
      .priority(target.priority)
      .flags(OPMUX_IMPL_ATOMIC_OUTPUTS | OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT |
             OPMUX_IMPL_CAPTURE_SAFE)
      .caps(plugin::Caps{}
                .dtypes({plugin::f32, plugin::f16, plugin::bf16})
                .inner_contiguous()
                .device_type(OPMUX_DEVICE_CPU)
                .cpu_features(target.cpu_features))
      .verify(
          [](const plugin::Facts& facts, opmux_error* why) {
            if (facts.dtype("x") == facts.dtype("y")) return OPMUX_OK;
            return plugin::decline(why, "verify.dtype", "y must have the dtype of x");
          },
          {{OPMUX_FACT_DTYPE, "x"}, {OPMUX_FACT_DTYPE, "y"}});
  return impl;
}

inline int32_t decline_dtype(const plugin::Call& call) {
  return plugin::decline(call.error(), "simd.dtype", "no code for these dtypes");
}

// Calls row(x, y) with the first byte of every pair of rows, several rows at a time on several
// threads if the host lent them and there is enough to do.
template <class Row>
void for_each_row(const plugin::Call& call, const plugin::TensorArg& y, const plugin::TensorArg& x,
                  const Row& row) {
  constexpr int64_t kWorthAThread = 16384;  // elements
  const Rows from(x.c()), to(y.c());
  const int64_t size = x.dtype().bits / 8;
  const int64_t rows = from.count();
  const int64_t block = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, x.dim(-1)));
  call.for_each((rows + block - 1) / block, [&](int64_t b) {
    for (int64_t r = b * block; r < std::min(rows, (b + 1) * block); ++r) {
      row(x.data<const char>() + from.offset(r) * size, y.data<char>() + to.offset(r) * size);
    }
  });
}

}  // namespace opmux::backends::simd
