#pragma once

#include <cstddef>
#include <cstdint>

namespace opmux::dispatch {

/// Maximum number of tensors in a call whose arguments are passed in registers.
inline constexpr size_t kMaxLayouts = 4;

/// A layout number that no view has.
inline constexpr uint64_t kNoLayout = ~uint64_t{0};

/// A small direct-mapped cache of layout numbers that a plan has accepted. A program that
/// alternates between a few batch sizes passes the same layouts again.
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
  /// `plan_id` identifies the class for which the layouts were accepted.
  struct Set {
    uint64_t layouts[kMaxLayouts] = {};
    uint64_t plan_id = 0;
  };
  /// Index of the set. Layouts are numbered in groups of four per call, so the group number of the
  /// first layout spreads calls over the sets.
  static size_t place(const uint64_t* layouts) { return layouts[0] / kMaxLayouts % kSets; }

  Set sets_[kSets];
};

}  // namespace opmux::dispatch
