// Operators by sgemm of OpenBLAS. f32 is read and written in place if its strides allow; everything
// else goes through copies in the workspace. One operator per file.
#pragma once

#include <opmux/plugin.hpp>

#include <limits>
#include <string_view>

namespace opmux::backends::openblas {

plugin::Impl matmul();
plugin::Impl linear();
plugin::Impl attention();

// What all of them share. `depth` is the dimension that products add over. Not batch invariant:
// OpenBLAS chooses code by the number of rows. Not capture safe: OpenBLAS takes memory when it
// pleases.
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
