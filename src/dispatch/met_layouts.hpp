#pragma once

#include <cstddef>
#include <cstdint>

namespace opmux::dispatch {

/// Tensors of a call whose arguments travel in registers.
inline constexpr size_t kMaxLayouts = 4;

/// No view has it.
inline constexpr uint64_t kNoLayout = ~uint64_t{0};

/// Views that a plan was found to hold for, by their layouts: a program that goes round among a few
/// batch sizes meets the same ones again.
class MetLayouts {
 public:
  static constexpr size_t kSets = 16;

  template <int kTensors>
  [[gnu::always_inline]] bool has(const uint64_t* layouts, uint64_t plan_id) const {
    const Set& set = sets_[place(layouts)];
    uint64_t differs = set.plan_id ^ plan_id;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) differs |= set.layouts[i] ^ layouts[i];
    return differs == 0;
  }

  template <int kTensors>
  [[gnu::always_inline]] void add(const uint64_t* layouts, uint64_t plan_id) {
    Set& set = sets_[place(layouts)];
    set.plan_id = plan_id;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) set.layouts[i] = layouts[i];
  }

 private:
  /// A plan's id stands for the class that it was decided for.
  struct Set {
    uint64_t layouts[kMaxLayouts] = {};
    uint64_t plan_id = 0;
  };
  /// Layouts that were met together are numbered together, in fours.
  static size_t place(const uint64_t* layouts) { return layouts[0] / kMaxLayouts % kSets; }

  Set sets_[kSets];
};

}  // namespace opmux::dispatch
