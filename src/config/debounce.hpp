#pragma once

#include <algorithm>
#include <cstdint>

namespace opmux::config {

/// Debounces file changes, which come in bursts: the action is due after a quiet period, at the
/// latest a fixed time after the first change. The last change of a burst is never missed.
class Debounce {
 public:
  static constexpr uint64_t kQuiet = 50'000'000, kLatest = 250'000'000;  ///< ns
  static constexpr uint64_t kIdle = UINT64_MAX;

  void note(uint64_t now_ns) {
    if (first_ == kIdle) first_ = now_ns;
    last_ = now_ns;
  }
  /// When to act; kIdle if nothing changed. While a file is still being written, the quiet period
  /// does not apply.
  uint64_t due(bool still_written = false) const {
    if (first_ == kIdle) return kIdle;
    return still_written ? first_ + kLatest : std::min(last_ + kQuiet, first_ + kLatest);
  }
  void clear() { first_ = kIdle; }

 private:
  uint64_t first_ = kIdle, last_ = 0;
};

}  // namespace opmux::config
