#pragma once

#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

Shaper rms_norm();
Shaper fused_add_rms_norm();
Shaper layer_norm();
Shaper silu_and_mul();
Shaper gelu_and_mul();
Shaper rotary_embedding();
Shaper softmax();
Shaper matmul();
Shaper linear();
Shaper embedding();
Shaper reshape_and_cache();
Shaper attention();
Shaper paged_attention();
Shaper topk_softmax();
Shaper fused_moe();
Shaper linear_w8a8();
Shaper linear_w4a16();
Shaper sample();

/// The generic shaper, for operators of which only the schema is known.
Shaper own();

}  // namespace opmux::conformance::operators
