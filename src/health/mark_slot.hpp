#pragma once

#include <atomic>
#include <cstdint>

namespace opmux::health {

inline constexpr uint32_t kMarkLevels = 8;  ///< calls inside calls

/// Marks with this bit say "reading the operator's state" and name no implementation.
inline constexpr uint64_t kColdBit = uint64_t{1} << 63;

/// The lowest bits of other marks are the number that an implementation has here; 0 is none.
inline constexpr uint32_t kNumberBits = 18;
inline constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;

/// What an implementation is called in marks; those that came too late for a number share 0.
constexpr uint32_t number_in_marks(uint32_t implementation) {
  return implementation < kNumberMask ? implementation + 1 : 0;
}

/// What one thread is inside of, level by level: plans by their ids, and what runs on the slow
/// path, whose mark names nothing, by its number. Lies in the thread's own memory or in the
/// process's crash journal, where it outlives the process. Written by its thread alone.
struct alignas(64) MarkSlot {
  std::atomic<uint64_t> marks[kMarkLevels] = {};
  std::atomic<uint32_t> running[kMarkLevels] = {};
  uint32_t unused[8] = {};

  /// The implementation inside of which the thread is at this level; 0 if none.
  uint32_t number_at(uint32_t level) const {
    const uint32_t slow = running[level].load(std::memory_order_relaxed);
    if (slow != 0) return slow & kNumberMask;
    const uint64_t mark = marks[level].load(std::memory_order_relaxed);
    return (mark & kColdBit) != 0 ? 0 : static_cast<uint32_t>(mark) & kNumberMask;
  }
  /// The same of the deepest level.
  uint32_t innermost() const {
    for (uint32_t level = kMarkLevels; level-- > 0;) {
      if (const uint32_t number = number_at(level)) return number;
    }
    return 0;
  }
  void clear() {
    for (auto& mark : marks) mark.store(0, std::memory_order_relaxed);
    for (auto& number : running) number.store(0, std::memory_order_relaxed);
  }
};
static_assert(sizeof(MarkSlot) == 128);

/// Where a thread's marks are and were: plans that a program bound may still use an earlier place.
struct MarkPlaces {
  static constexpr uint32_t kMost = 16;
  std::atomic<MarkSlot*> places[kMost] = {};  ///< null from the first that is not used

  /// The implementation that the thread is in; 0 if none. Safe in signal handlers.
  uint32_t innermost() const {
    for (uint32_t i = kMost; i-- > 0;) {
      const MarkSlot* const place = places[i].load(std::memory_order_relaxed);
      if (place == nullptr) continue;
      if (const uint32_t number = place->innermost()) return number;
    }
    return 0;
  }
};

}  // namespace opmux::health
