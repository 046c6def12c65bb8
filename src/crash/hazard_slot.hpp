#pragma once

#include <atomic>
#include <cstdint>

#include "crash/phase.hpp"

namespace opmux::crash {

inline constexpr uint32_t kMarkLevels = 8;  ///< maximum nesting depth of calls

/// Marks with this bit mean "reading the operator's state" and name no implementation.
inline constexpr uint64_t kColdBit = uint64_t{1} << 63;

/// The lowest bits of all other marks are the implementation's number; 0 = none.
inline constexpr uint32_t kNumberBits = 18;
inline constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;

/// The highest numbers are those of plugin files and backends; see crash/journal_part.hpp.
inline constexpr uint32_t kMostParts = 4096;
inline constexpr uint32_t kFirstPart = kNumberMask - kMostParts + 1;

/// The number of an implementation in marks; 0 if there are too many implementations.
constexpr uint32_t number_in_marks(uint32_t implementation) {
  return implementation < kFirstPart - 1 ? implementation + 1 : 0;
}

/// A number and, in the bits above it, the phase in which its code runs.
constexpr uint32_t word_of(uint32_t number, Phase phase) {
  return number | static_cast<uint32_t>(phase) << kNumberBits;
}
constexpr uint32_t number_of(uint32_t word) { return word & kNumberMask; }
constexpr Phase phase_of(uint32_t word) { return to_phase(word >> kNumberBits); }

/// The calls that one thread is inside of, per nesting level. `marks` holds plan ids; `running`
/// holds the word_of() the implementation, plugin or backend whose code runs outside of the fast
/// path, where the mark does not name it. A slot is in the thread's memory or in the crash journal,
/// where it outlives the process. Only its thread writes it.
struct alignas(64) HazardSlot {
  std::atomic<uint64_t> marks[kMarkLevels] = {};
  std::atomic<uint32_t> running[kMarkLevels] = {};
  uint32_t unused[8] = {};

  /// The word of the code that the thread is in at this level; 0 = none.
  uint32_t word_at(uint32_t level) const {
    const uint32_t slow = running[level].load(std::memory_order_relaxed);
    if (slow != 0) return slow;
    const uint64_t mark = marks[level].load(std::memory_order_relaxed);
    return (mark & kColdBit) != 0 ? 0 : number_of(static_cast<uint32_t>(mark));
  }
  /// The word at the deepest level that names an implementation or a part; 0 = none.
  uint32_t innermost() const {
    for (uint32_t level = kMarkLevels; level-- > 0;) {
      if (const uint32_t word = word_at(level); number_of(word) != 0) return word;
    }
    return 0;
  }
  void clear() {
    for (auto& mark : marks) mark.store(0, std::memory_order_relaxed);
    for (auto& number : running) number.store(0, std::memory_order_relaxed);
  }
};
static_assert(sizeof(HazardSlot) == 128);

/// The slots of a thread, current and earlier ones: plans that a program bound may still use an
/// earlier slot.
struct HazardSlotPlaces {
  static constexpr uint32_t kMost = 16;
  std::atomic<HazardSlot*> places[kMost] = {};  ///< null after the last one in use

  /// The word of the code that the thread is in; 0 = none. Safe in signal handlers.
  uint32_t innermost() const {
    for (uint32_t i = kMost; i-- > 0;) {
      const HazardSlot* const place = places[i].load(std::memory_order_relaxed);
      if (place == nullptr) continue;
      if (const uint32_t word = place->innermost()) return word;
    }
    return 0;
  }
};

}  // namespace opmux::crash
