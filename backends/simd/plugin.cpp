#include "backends/simd/targets.hpp"

namespace op = opmux::plugin;
namespace simd = opmux::backends::simd;

OPMUX_PLUGIN_ENTRY(simd) {
  return op::answer(host, out, [] {
    op::Backend backend{"simd", OPMUX_KIND_DEFAULT};
    simd::add_rms_norm(backend);
    simd::add_fused_add_rms_norm(backend);
    simd::add_silu_and_mul(backend);
    simd::add_silu_and_mul_bf16(backend);
    simd::add_layer_norm(backend);
    simd::add_gelu_and_mul(backend);
    simd::add_softmax(backend);
    simd::add_linear(backend);
    simd::add_linear_amx(backend);
    simd::add_matmul(backend);
    simd::add_rotary_embedding(backend);
    simd::add_embedding(backend);
    simd::add_reshape_and_cache(backend);
    simd::add_linear_w4a16(backend);
    simd::add_attention(backend);
    simd::add_paged_attention(backend);
    simd::add_paged_attention_amx(backend);
    simd::add_sample(backend);
    simd::add_topk_softmax(backend);
    return op::Plugin{"simd", OPMUX_BACKEND_VERSION}.add(backend);
  });
}
