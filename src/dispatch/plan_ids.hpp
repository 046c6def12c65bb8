#pragma once

#include <atomic>
#include <cstdint>

#include "dispatch/thread_block.hpp"
#include "health/mark_slot.hpp"

namespace opmux::dispatch {

/// Gives out the ids of the plans of one operator state, which tell whose they are and which
/// implementation they run: as marks, they outlive the process in its crash journal. Thread-safe.
class PlanIds {
 public:
  /// No other state of this process has or will have this serial.
  explicit PlanIds(uint64_t serial) : serial_(serial) {}

  uint64_t serial() const { return serial_; }
  /// Takes `count` ids at once and returns the number of the first.
  uint64_t take(uint64_t count) { return taken_.fetch_add(count, std::memory_order_relaxed); }
  /// Plans of the same implementation and state may share one if there are many.
  uint64_t id(uint64_t number, uint32_t implementation) const {
    const uint64_t counted = number & ((1u << kCountBits) - 1);
    return (serial_ << kBits | counted << health::kNumberBits |
            health::number_in_marks(implementation)) &
           ~kColdBit;
  }
  /// Whether a plan id was given out by the state with this serial.
  static bool is_of(uint64_t plan_id, uint64_t serial) {
    return plan_id >> kBits == (serial << kBits & ~kColdBit) >> kBits;
  }

 private:
  static constexpr uint32_t kCountBits = 4, kBits = kCountBits + health::kNumberBits;
  const uint64_t serial_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace opmux::dispatch
