// Operators implemented with OpenBLAS' sgemm. f32 tensors are read and written in place if their
// strides allow it; all others are copied through the workspace. One operator per file.
#pragma once

#include <opmux/plugin.hpp>

#include <limits>
#include <string_view>

namespace opmux::backends::openblas {

plugin::Impl matmul();
plugin::Impl linear();
plugin::Impl attention();

// Common declarations of all implementations. `depth` names the dimension that products sum over.
// Not batch invariant, because OpenBLAS selects kernels by the number of rows. Not capture safe,
// because OpenBLAS may allocate memory during any call.
inline plugin::Impl by_gemm(std::string_view op, std::string_view signature, std::string_view depth,
                            plugin::Caps caps = {}) {
  plugin::Impl impl{op, "gemm"};
  impl.signature(signature)
      .caps(caps.dtypes({plugin::f32, plugin::f16, plugin::bf16})
                .at_most(depth, std::numeric_limits<int32_t>::max())
                .device_type(OPMUX_DEVICE_CPU))
      .flags(OPMUX_IMPL_ATOMIC_OUTPUTS | OPMUX_IMPL_DETERMINISTIC);
  return impl;
}

}  // namespace opmux::backends::openblas
