#pragma once

#include <opmux/opmux.h>

namespace opmux::test {

/// The behaviour of an implementation of silu_and_mul.
enum class Behaviour : uint8_t {
  computes,
  fails,
  declines,
  lacks_memory,
  uses_workspace,
  uses_a_prepared_state,
  uses_threads,
  asks_whether_it_is_available,
  calls_an_operator  ///< runs rms_norm of the same runtime first
};

/// Registers "silu_and_mul/mine.v", which is preferred to the reference.
int32_t implement_silu(opmux_runtime* runtime, Behaviour behaviour,
                       opmux_registration** registration, opmux_error* error);

/// How often implementations that implement_silu() registered have run in this process.
uint64_t runs_of_silu();

}  // namespace opmux::test
