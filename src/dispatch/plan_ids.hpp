#pragma once

#include <atomic>
#include <cstdint>

#include "dispatch/thread_block.hpp"
#include "health/mark_slot.hpp"

namespace opmux::dispatch {

/// Allocates the plan ids of one OperatorState. An id contains the serial of the state, so that the
/// reclaimer can map a mark to its state, and the number of the implementation, so that the crash
/// journal, where marks outlive the process, can name it. Thread-safe.
class PlanIds {
 public:
  /// `serial` must be unique in the process.
  explicit PlanIds(uint64_t serial) : serial_(serial) {}

  uint64_t serial() const { return serial_; }
  /// Reserves `count` consecutive numbers and returns the first.
  uint64_t take(uint64_t count) { return taken_.fetch_add(count, std::memory_order_relaxed); }
  /// Composes an id. The number is truncated to kCountBits, so plans of the same state and
  /// implementation may share an id.
  uint64_t id(uint64_t number, uint32_t implementation) const {
    const uint64_t counted = number & ((1u << kCountBits) - 1);
    return (serial_ << kBits | counted << health::kNumberBits |
            health::number_in_marks(implementation)) &
           ~kColdBit;
  }
  /// True if the state with this serial allocated the plan id.
  static bool is_of(uint64_t plan_id, uint64_t serial) {
    return plan_id >> kBits == (serial << kBits & ~kColdBit) >> kBits;
  }

 private:
  static constexpr uint32_t kCountBits = 4, kBits = kCountBits + health::kNumberBits;
  const uint64_t serial_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace opmux::dispatch
