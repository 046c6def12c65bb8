#pragma once

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

Bounds rms_norm();
Bounds fused_add_rms_norm();
Bounds layer_norm();
Bounds silu_and_mul();
Bounds gelu_and_mul();
Bounds rotary_embedding();
Bounds softmax();
Bounds matmul();
Bounds linear();
Bounds attention();
Bounds paged_attention();
Bounds topk_softmax();
Bounds fused_moe();
Bounds linear_w8a8();
Bounds linear_w4a16();

/// Generic bounds, for operators of which only the schema is known.
Bounds own();

}  // namespace opmux::verify::operators
