#pragma once

#include <atomic>
#include <cstdint>

#include <opmux/abi.h>
#include <opmux/export.hpp>

/// What Plan::run_unchecked needs to be inline. Programs do not use it by name.
namespace opmux {

namespace dispatch {
struct ThreadBlock;

/// What the calling thread owns of the engine.
OPMUX_API extern thread_local constinit ThreadBlock* thread_block
    __attribute__((tls_model("initial-exec")));
}  // namespace dispatch

namespace detail {
/// The part of a bound plan that a call without checks touches.
struct alignas(64) HotPlan {
  static constexpr uint32_t kRevoked = 2;
  /// Runs, but the library looks at how each call ends; as all above kRevoked, not inline.
  static constexpr uint32_t kWatched = 3;

  const dispatch::ThreadBlock* block = nullptr;  ///< of the thread that called last
  std::atomic<uint64_t>* mark = nullptr;         ///< that thread's in-flight mark
  uint64_t plan_id = 0;
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
  const opmux_call* call = nullptr;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint32_t> state{0};  ///< a Plan::State, set by the engine
};
}  // namespace detail

}  // namespace opmux
