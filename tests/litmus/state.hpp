// Data shared by readers and the writer: states, the lines copied from them, and a thread's block.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "gate.hpp"

namespace litmus {

inline constexpr std::size_t kOperators = 32;
inline constexpr std::size_t kLevels = 8;  // Levels of nested calls with a separate slot.
inline constexpr std::size_t kPlans = 2;   // Per state.
inline constexpr std::uint64_t kColdBit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kCanary = 0x0b5e55edcafef00d;
inline constexpr std::uint64_t kPoison = 0xdeadbeefdeadbeef;

struct State;

struct Plan {
  std::uint64_t canary;
  std::uint64_t id;
  const State* state;
};

// The compiled form of an operator. Immutable once published; owned by the writer.
struct State {
  std::uint64_t canary;
  std::uint64_t epoch;
  std::array<Plan, kPlans> plans;

  bool owns(std::uint64_t plan_id) const {
    return plan_id >= plans.front().id && plan_id <= plans.back().id;
  }
};

// A thread's copy of one plan. The memory behind `plan` may be accessed only if `epoch` equals the
// operator's word, or if a cold mark covers the load that filled this line.
struct Line {
  std::uint64_t epoch = 0;
  std::uint64_t plan_id = 0;
  const Plan* plan = nullptr;

  // A reused address has a different id, so a stale line is detected even without poison.
  bool intact() const {
    return plan->canary == (kCanary ^ plan_id) &&
           plan->state->canary == (kCanary ^ plan->state->epoch);
  }
};

// State of a thread. Other threads read only `marks`; `number` is never reused, while an address
// may be.
struct Block {
  std::uint64_t number = 0;
  std::array<std::atomic<std::uint64_t>, kLevels> marks{};
  std::array<Line, kOperators> lines{};
  std::size_t depth = 0;
  std::uint64_t cold_sequence = 0;
  std::uint64_t hot_calls = 0;
  std::uint64_t cold_calls = 0;
  Gate* gate = nullptr;

  void reach(Point point) {
    if (gate) gate->reach(point);
  }
};

}  // namespace litmus
