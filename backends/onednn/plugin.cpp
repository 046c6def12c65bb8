#include <opmux/plugin.hpp>

#include "backends/onednn/implementations.hpp"

namespace op = opmux::plugin;
namespace onednn = opmux::backends::onednn;

op::Caps onednn::float_caps() {
  op::Caps caps;
  caps.device_type(OPMUX_DEVICE_CPU);
  const bool bf16 = __builtin_cpu_supports("avx512bw");
  const bool f16 = __builtin_cpu_supports("avx512fp16");
  if (f16) return caps.dtypes({op::f32, op::bf16, op::f16});
  return bf16 ? caps.dtypes({op::f32, op::bf16}) : caps.dtypes({op::f32});
}

OPMUX_PLUGIN_ENTRY(onednn) {
  return op::answer(host, out, [] {
    // OpenMP threads do not survive a fork, and the OpenMP runtime does not detect it.
    op::Backend backend{"onednn", OPMUX_KIND_VENDOR};
    backend.vendor("intel").flags(OPMUX_BACKEND_FORK_LOST);
    onednn::add_attention(backend);
    onednn::add_fused_moe(backend);
    onednn::add_linear(backend);
    onednn::add_linear_w8a8(backend);
    onednn::add_matmul(backend);
    return op::Plugin{"onednn", OPMUX_BACKEND_VERSION}.add(backend);
  });
}
