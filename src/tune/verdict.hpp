#pragma once

#include <cstdint>
#include <string_view>

namespace opmux::tune {

/// The speed of an implementation compared with that of a baseline.
enum class Verdict : uint8_t {
  faster,   ///< the whole interval is faster, and its center by more than the margin of a tie
  slower,   ///< the whole interval is slower, and not within the margin of a tie
  same,     ///< the whole interval is within the margin of a tie
  unclear,  ///< the rounds do not tell
};
constexpr std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster: return "faster";
    case Verdict::slower: return "slower";
    case Verdict::same: return "same";
    case Verdict::unclear: return "unclear";
  }
  return "unknown";
}

/// Log ratios within this are a tie.
inline constexpr double kTieMargin = 0.01;

/// Judges log(its time / time of the baseline) with the bounds of its interval.
constexpr Verdict verdict_of(double log_ratio, double low, double high,
                             double margin = kTieMargin) {
  if (low >= -margin && high <= margin) return Verdict::same;
  if (high < 0 && log_ratio < -margin) return Verdict::faster;
  if (low > 0) return Verdict::slower;
  return Verdict::unclear;
}

}  // namespace opmux::tune
