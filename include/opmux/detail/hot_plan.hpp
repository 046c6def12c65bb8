#pragma once

#include <cstdint>

#include <opmux/abi.h>
#include <opmux/detail/export.hpp>

/// The part of a bound plan that the inline Plan::run_unchecked() reads. Internal: programs do not
/// use it by name, and its layout may change with every version.
namespace opmux {

namespace dispatch {
/// Number of the calling thread. 0 until the engine has state for it. Never reused, unlike the
/// address of that state.
OPMUX_API extern thread_local constinit uint64_t thread_number
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
  /// A decision of the operator may have changed, so the library must evaluate the plan before it
  /// runs again.
  static constexpr uint32_t kOutdated = 4;

  uint64_t thread = UINT64_MAX;  ///< Number of the thread that called last.
  uint64_t* mark = nullptr;      ///< That thread's slot for the plan it is running.
  uint64_t plan_id = 0;          ///< Value of that slot while the plan runs.
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
  const opmux_call* call = nullptr;
  uint64_t calls = 0;  ///< Calls that ended ok and are not yet in the statistics.
  uint32_t state = 0;  ///< A Plan::State, kWatched or kOutdated.

  // Other threads access `*mark`, `calls` and `state` as well, so every access is atomic. These are
  // the builtins of the compiler because <atomic> is expensive to include.

  /// Whether the thread already runs a plan.
  bool marked() const noexcept { return __atomic_load_n(mark, __ATOMIC_RELAXED) != 0; }
  /// Announces that the thread runs this plan, and returns the state afterwards.
  uint32_t enter() const noexcept {
    __atomic_store_n(mark, plan_id, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return load_state();
  }
  /// Ends a run that succeeded.
  void leave() noexcept {
    __atomic_store_n(mark, uint64_t{0}, __ATOMIC_RELEASE);
    count_call();
  }
  void count_call() noexcept {
    __atomic_store_n(&calls, __atomic_load_n(&calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
  }
  uint64_t load_calls() const noexcept { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }
  uint32_t load_state() const noexcept { return __atomic_load_n(&state, __ATOMIC_ACQUIRE); }
};
}  // namespace detail

}  // namespace opmux
