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

}  // namespace opmux::conformance::operators
