#include "backends/reference/implementations.hpp"

namespace ref = opmux::backends::reference;
namespace op = opmux::plugin;

OPMUX_PLUGIN_ENTRY(reference) {
  return op::answer(host, out, [] {
    return op::Plugin{"reference", OPMUX_BACKEND_VERSION}.add(
        op::Backend{"reference", OPMUX_KIND_REFERENCE}
            .add(ref::rms_norm())
            .add(ref::fused_add_rms_norm())
            .add(ref::layer_norm())
            .add(ref::silu_and_mul())
            .add(ref::gelu_and_mul())
            .add(ref::rotary_embedding())
            .add(ref::softmax())
            .add(ref::matmul())
            .add(ref::linear())
            .add(ref::embedding())
            .add(ref::reshape_and_cache())
            .add(ref::attention())
            .add(ref::paged_attention())
            .add(ref::topk_softmax())
            .add(ref::fused_moe())
            .add(ref::linear_w8a8())
            .add(ref::linear_w4a16())
            .add(ref::sample()));
  });
}
