#pragma once

#include <cstdint>
#include <cstring>

#include "dispatch/guarded_plan.hpp"

/// Calls whose arguments travel in registers: one to four, tensors first.
namespace opmux::dispatch {

template <int kTensors, int kScalars>
struct ArgumentWords {
  static_assert(kTensors >= 1 && kTensors + kScalars <= 4);
  uint64_t words[4];

  const TensorView& tensor(int i) const { return *reinterpret_cast<const TensorView*>(words[i]); }

  /// As every other path has them.
  void unpack(ArgValue* values) const { std::memcpy(values, words, sizeof words); }

  template <int kWords>
  [[gnu::always_inline]] bool same_tensors(const GuardedPlan& plan) const {
    WordPair differs{};
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      differs |= GuardedPlan::tensor_differs<kWords>(plan.exact + i * (2 + 2 * kWords), tensor(i));
    }
    return is_zero(differs);
  }

  /// Exactly the tensors of last time, up to rank 4, where nothing but tensors counts.
  [[gnu::always_inline]] bool same(const GuardedPlan& plan) const {
    if (plan.compare == Comparison::pairs) return same_tensors<2>(plan);
    if (plan.compare == Comparison::quads) return same_tensors<4>(plan);
    return false;
  }

  /// Device, rank and element type of every tensor are those of last time.
  template <int kWords>
  [[gnu::always_inline]] bool same_kinds(const GuardedPlan& plan) const {
    WordPair differs{};
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      differs |= load_pair(plan.exact + i * (2 + 2 * kWords)) ^ load_pair(&tensor(i).c().device);
    }
    return is_zero(differs);
  }

  /// Keeps shapes and strides; kinds are the same.
  template <int kWords>
  [[gnu::always_inline]] void remember(GuardedPlan& plan) const {
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      uint64_t* kept = plan.exact + i * (2 + 2 * kWords) + 2;
      std::memcpy(kept, tensor(i).shape_words(), kWords * sizeof(int64_t));
      std::memcpy(kept + kWords, tensor(i).stride_words(), kWords * sizeof(int64_t));
    }
  }

  [[gnu::always_inline]] void set(GuardedPlan& plan) const {
    opmux_arg* args = plan.args;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors + kScalars; ++i) {
      std::memcpy(&args[i].value, &words[i], sizeof(uint64_t));
    }
  }
};

/// The combinations that the library has; Packed::kInRegisters knows them too.
#define OPMUX_FOR_ARGUMENT_WORDS(entry)                                                           \
  entry(1, 0) entry(1, 1) entry(1, 2) entry(1, 3) entry(2, 0) entry(2, 1) entry(2, 2) entry(3, 0) \
      entry(3, 1) entry(4, 0)

}  // namespace opmux::dispatch
