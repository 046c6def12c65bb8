#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "runtime/shadow_counts.hpp"

namespace opmux::runtime {

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

}  // namespace opmux::runtime
