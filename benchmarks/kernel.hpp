#pragma once

#include <opmux/abi.h>

namespace opmux::bench {

/// The kernel of every benchmark: does nothing, but the compiler cannot know. It lives in a shared
/// library of its own, as the kernels of every backend do: on current cores a call from one library
/// into another costs half as much again as one that stays, and the bare call makes it too.
int32_t nothing(void* user_data, const opmux_call* call);

}  // namespace opmux::bench
