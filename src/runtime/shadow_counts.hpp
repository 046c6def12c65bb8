#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include <opmux/health.hpp>

namespace opmux::runtime {

/// Why a call that was to be compared is not.
enum class ShadowSkip : uint8_t {
  memory,       ///< the copies that wait take what they may
  busy,         ///< as many of its implementation's calls wait as may
  device,       ///< its tensors are not in memory that the CPU reads
  stream,       ///< it ends after it returned
  transformed,  ///< it ran on transformed copies of its tensors
  nested,       ///< a call inside another, or one that stands in after a failure
  capturing,    ///< it is captured, to run later
  arguments,    ///< strings, lists, or element types that cannot be compared
  reference,    ///< the reference does not take it, or may not run
};
inline constexpr size_t kShadowSkips = 9;
std::string_view name_of(ShadowSkip reason) noexcept;

/// What became of the calls of one implementation. Thread-safe.
struct ShadowCounts {
  std::atomic<uint64_t> compared{0}, mismatches{0}, not_finite{0};
  std::array<std::atomic<uint64_t>, kShadowSkips> skipped{};
  std::atomic<uint32_t> agreed{0};     ///< comparisons since it was last wrong
  std::atomic<bool> was_wrong{false};  ///< ever

  void skip(ShadowSkip reason) {
    skipped[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace opmux::runtime
