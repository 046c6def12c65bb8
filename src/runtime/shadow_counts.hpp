#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include <opmux/health.hpp>

namespace opmux::runtime {

/// Why a sampled call is not compared.
enum class ShadowSkip : uint8_t {
  memory,       ///< the queued copies use all memory they may
  busy,         ///< the implementation has as many calls in the queue as it may
  device,       ///< its tensors are not in memory that the CPU can read
  stream,       ///< it only enqueues work on a stream
  transformed,  ///< it ran on transformed copies of its tensors
  nested,       ///< a call inside another call, or a fallback after a failure
  capturing,    ///< it is captured for a later run
  arguments,    ///< strings, lists, or dtypes that cannot be compared
  reference,    ///< the reference does not accept the call or may not run
};
inline constexpr size_t kShadowSkips = 9;
std::string_view name_of(ShadowSkip reason) noexcept;

/// Counters of the shadow check for one implementation. Thread-safe.
struct ShadowCounts {
  std::atomic<uint64_t> compared{0}, mismatches{0}, not_finite{0};
  std::array<std::atomic<uint64_t>, kShadowSkips> skipped{};
  std::atomic<uint32_t> agreed{0};     ///< comparisons since the last mismatch
  std::atomic<bool> was_wrong{false};  ///< it had at least one mismatch

  void skip(ShadowSkip reason) {
    skipped[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace opmux::runtime
