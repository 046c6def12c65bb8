#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

#include <opmux/health.hpp>

namespace opmux::shadow {

/// Why a sampled call is not compared.
enum class ShadowSkip : uint8_t {
  memory,       ///< the queued copies use all memory they may
  size,         ///< copying its tensors would take the caller too long
  busy,         ///< the implementation has as many calls in the queue as it may
  device,       ///< its tensors are not in memory that the CPU can read
  stream,       ///< it only enqueues work on a stream
  transformed,  ///< it ran on transformed copies of its tensors
  nested,       ///< a call inside another call, or a fallback after a failure
  capturing,    ///< it is captured for a later run
  arguments,    ///< strings, lists, or dtypes that cannot be compared
  reference,    ///< the reference does not accept the call or may not run
  opaque,       ///< a function that is not pure, or that returns something else than tensors
};
inline constexpr size_t kShadowSkips = 11;
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

/// Average number of calls per compared call: small until an implementation has agreed often, then
/// `every` rounded down to a power of two. 0: no call is compared.
inline uint32_t shadow_interval(uint32_t every, uint32_t agreed, bool was_wrong) {
  if (every == 0) return 0;
  const uint32_t most = std::bit_floor(every);
  if (was_wrong && agreed < 16) return 1;
  if (agreed < 64) return std::min(most, 16u);
  if (agreed < 512) return std::min(most, 128u);
  return most;
}

/// Selects calls at random distances, so that periodic call patterns are sampled evenly.
/// Thread-safe; concurrent calls may be counted as one.
class ShadowSampler {
 public:
  explicit ShadowSampler(uint64_t seed) : random_(seed) {}

  /// Whether the current call is selected.
  bool due() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left <= 1) return true;
    left_.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  /// Draws the distance to the next selected call. `interval` 0: none for a long while.
  void pick_next(uint32_t interval) {
    uint64_t word = random_.load(std::memory_order_relaxed) + 0x9E3779B97F4A7C15;
    random_.store(word, std::memory_order_relaxed);
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * 0x94D049BB133111EB;
    const uint32_t most = interval == 0 ? kIdle : 2 * std::min(interval, kIdle) - 1;
    left_.store(static_cast<uint32_t>(1 + (word >> 32) % most), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kIdle = 1u << 20;

  std::atomic<uint32_t> left_{1};
  std::atomic<uint64_t> random_;
};

}  // namespace opmux::shadow
