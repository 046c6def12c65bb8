#pragma once

#include <algorithm>
#include <cstdint>

namespace opmux::config {

/// Changes come in bursts: acts when it has been quiet for a while, and never later than a fixed
/// time after the first change. The last change is never lost.
class Debounce {
 public:
  static constexpr uint64_t kQuiet = 50'000'000, kLatest = 250'000'000;
  static constexpr uint64_t kIdle = UINT64_MAX;

  void note(uint64_t now_ns) {
    if (first_ == kIdle) first_ = now_ns;
    last_ = now_ns;
  }
  /// When to act; kIdle if nothing changed. While somebody still writes it waits to the end.
  uint64_t due(bool still_written = false) const {
    if (first_ == kIdle) return kIdle;
    return still_written ? first_ + kLatest : std::min(last_ + kQuiet, first_ + kLatest);
  }
  void clear() { first_ = kIdle; }

 private:
  uint64_t first_ = kIdle, last_ = 0;
};

}  // namespace opmux::config
