#pragma once

#include <opmux/abi.h>

namespace opmux::bench {

/// The empty kernel of every benchmark; the compiler cannot optimise calls of it away. It is in a
/// separate shared library, as the kernels of backends are, because on current cores a call into
/// another library costs 1.5 times as much as a call within one. The bare call has the same cost.
int32_t nothing(void* user_data, const opmux_call* call);

}  // namespace opmux::bench
