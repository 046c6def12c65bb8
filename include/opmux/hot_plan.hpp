#pragma once

#include <atomic>
#include <cstdint>

#include <opmux/abi.h>
#include <opmux/export.hpp>

/// The part of a bound plan that the inline Plan::run_unchecked() reads. Internal: programs do not
/// use it by name, and its layout may change with every version.
namespace opmux {

namespace dispatch {
struct ThreadBlock;

/// The calling thread's state in the engine; shared between all runtimes of the process.
OPMUX_API extern thread_local constinit ThreadBlock* thread_block
    __attribute__((tls_model("initial-exec")));
}  // namespace dispatch

namespace detail {
/// Fields of a bound plan that a call without checks touches, in one cache line. The engine writes
/// `state` from any thread; the other fields belong to the thread that uses the plan.
struct alignas(64) HotPlan {
  /// Smallest `state` with which the inline path must not run the kernel.
  static constexpr uint32_t kRevoked = 2;
  /// The plan runs, but the library must see how each call ends because a breaker watches the
  /// implementation. Such calls leave the inline path.
  static constexpr uint32_t kWatched = 3;

  const dispatch::ThreadBlock* block = nullptr;  ///< State of the thread that called last.
  std::atomic<uint64_t>* mark = nullptr;         ///< That thread's slot for the plan it is running.
  uint64_t plan_id = 0;                          ///< Value of that slot while the plan runs.
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
  const opmux_call* call = nullptr;
  std::atomic<uint64_t> calls{0};  ///< Calls that ended ok and are not yet in the statistics.
  std::atomic<uint32_t> state{0};  ///< A Plan::State or kWatched.
};
}  // namespace detail

}  // namespace opmux
