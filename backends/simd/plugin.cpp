#include "backends/simd/targets.hpp"

namespace op = opmux::plugin;
namespace simd = opmux::backends::simd;

OPMUX_PLUGIN_ENTRY(simd) {
  return op::answer(host, out, [] {
    op::Backend backend{"simd", OPMUX_KIND_DEFAULT};
    simd::add_rms_norm(backend);
    simd::add_silu_and_mul(backend);
    return op::Plugin{"simd", OPMUX_BACKEND_VERSION}.add(backend);
  });
}
