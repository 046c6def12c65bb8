#pragma once

#include <cstdint>
#include <cstring>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// The arguments of a call that passes one to four of them in registers, tensors first. Compares
/// them with a plan without building an ArgValue array.
template <int kTensors, int kScalars>
struct ArgumentWords {
  static_assert(kTensors >= 1 && kTensors + kScalars <= 4);
  uint64_t words[4];

  const TensorView& tensor(int i) const { return *reinterpret_cast<const TensorView*>(words[i]); }

  /// Converts to the form that all other paths use.
  void unpack(ArgValue* values) const { std::memcpy(values, words, sizeof words); }

  /// True if every view has the layout number that the plan saw in the last call. Equal numbers
  /// imply equal device, element type, shape and strides.
  [[gnu::always_inline]] bool same_layouts(const CachedPlan& plan) const {
    uint64_t differs = 0;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) differs |= plan.layouts[i] ^ tensor(i).layout();
    return differs == 0;
  }

  /// See CachedPlan::lacks_data().
  [[gnu::always_inline]] bool lacks_data() const {
    bool found = false;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) found |= schema::lacks_data(tensor(i));
    return found;
  }

  /// Called when the views equal the tensors in `plan.exact`: gives plan and view the lower of
  /// their layout numbers, so that plans and views used together converge on one number.
  void share_layouts(CachedPlan& plan, ThreadBlock& block) const {
    const uint64_t fresh = plan.exact_layouts[0] == kNoLayout ? block.new_layouts() : 0;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      uint64_t& number = plan.exact_layouts[i];
      if (number == kNoLayout) number = fresh + static_cast<uint64_t>(i);
      if (const uint64_t of_view = tensor(i).layout(); of_view != 0 && of_view < number) {
        number = of_view;
      } else {
        tensor(i).keep_layout(number);
      }
      plan.layouts[i] = number;
    }
  }

  /// Called after the plan stored the views' shapes: takes over their layout numbers and assigns
  /// new ones to views that have none.
  void adopt_layouts(CachedPlan& plan, ThreadBlock& block) const {
    uint64_t fresh = 0;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      uint64_t number = tensor(i).layout();
      if (number == 0) {
        if (fresh == 0) fresh = block.new_layouts();
        number = fresh + static_cast<uint64_t>(i);
        tensor(i).keep_layout(number);
      }
      plan.layouts[i] = plan.exact_layouts[i] = number;
    }
    block.met->add<kTensors>(plan.layouts, plan.plan_id, plan.met_key);
  }

  /// True if the plan has already accepted views with these layout numbers.
  [[gnu::always_inline]] bool met_before(CachedPlan& plan, const ThreadBlock& block) const {
    uint64_t layouts[kTensors];
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) layouts[i] = tensor(i).layout();
    if (!block.met->has<kTensors>(layouts, plan.plan_id, plan.met_key)) return false;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) plan.layouts[i] = layouts[i];
    return true;
  }

  /// See CachedPlan::may_be_declined(). Words beyond the rank of a tensor are zero.
  template <int kWords>
  [[gnu::always_inline]] bool may_be_declined(const CachedPlan& plan) const {
    Declines::ShapeHash hash;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      hash.template add_words<kWords>(static_cast<uint32_t>(i), tensor(i).shape_words());
    }
    return plan.declines->may_have(hash.value());
  }

  template <int kWords>
  [[gnu::always_inline]] bool same_tensors(const CachedPlan& plan) const {
    WordPair differs{};
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      differs |= CachedPlan::tensor_differs<kWords>(plan.exact + i * (2 + 2 * kWords), tensor(i));
    }
    return is_zero(differs);
  }

  /// True if the tensors equal those of the last call. Always false for ranks above 4 and for plans
  /// that guard more than tensors.
  [[gnu::always_inline]] bool same(const CachedPlan& plan) const {
    if (plan.compare == Comparison::pairs) return same_tensors<2>(plan);
    if (plan.compare == Comparison::quads) return same_tensors<4>(plan);
    return false;
  }

  /// True if device, rank and element type of the first tensor match the last call. A plan for
  /// another element type is recognised by this without reading the rest of `exact`.
  [[gnu::always_inline]] bool same_first_kind(const CachedPlan& plan) const {
    return is_zero(load_aligned(plan.exact) ^ load_pair(&tensor(0).c().device));
  }

  /// True if a view has no layout number yet, so that no plan ran with it.
  [[gnu::always_inline]] bool has_new_view() const {
    bool found = false;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) found |= tensor(i).layout() == 0;
    return found;
  }

  /// True if device, rank and element type of every tensor match the last call.
  template <int kWords>
  [[gnu::always_inline]] bool same_kinds(const CachedPlan& plan) const {
    WordPair differs{};
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      differs |= load_pair(plan.exact + i * (2 + 2 * kWords)) ^ load_pair(&tensor(i).c().device);
    }
    return is_zero(differs);
  }

  /// True if only free dimensions differ from the last call, and these are equal in all tensors.
  template <int kWords>
  [[gnu::always_inline]] bool differ_freely(const CachedPlan& plan) const {
    const FreeDims& dims = plan.shapes->free;
    WordPair wrong{};
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      const uint64_t* kept = plan.exact + i * (2 + 2 * kWords);
      wrong |= load_aligned(kept) ^ load_pair(&tensor(i).c().device);
#pragma GCC unroll 2
      for (int word = 0; word < kWords; word += 2) {
        const WordPair shape = load_aligned(tensor(i).shape_words() + word);
        const WordPair free = load_aligned(dims.free[i] + word);
        wrong |= (shape ^ load_aligned(kept + 2 + word)) & ~free;
        if (i == 0) {
          wrong |= dims.out_of_bounds(shape, word);
        } else {
          wrong |= (shape ^ load_aligned(tensor(0).shape_words() + word)) & free;
        }
      }
    }
    return is_zero(wrong) && (!dims.strides_count || same_strides<kWords>(plan));
  }

  template <int kWords>
  bool same_strides(const CachedPlan& plan) const {
    WordPair differs{};
    for (int i = 0; i < kTensors; ++i) {
      const uint64_t* kept = plan.exact + i * (2 + 2 * kWords) + 2 + kWords;
      for (int word = 0; word < kWords; word += 2) {
        differs |= load_aligned(kept + word) ^ load_aligned(tensor(i).stride_words() + word);
      }
    }
    return is_zero(differs);
  }

  /// Stores shapes and strides in the plan. Device, rank and element type must be unchanged.
  template <int kWords>
  [[gnu::always_inline]] void remember(CachedPlan& plan) const {
#pragma GCC unroll 4
    for (int i = 0; i < kTensors; ++i) {
      uint64_t* kept = plan.exact + i * (2 + 2 * kWords) + 2;
#pragma GCC unroll 2
      for (int word = 0; word < kWords; word += 2) {
        store_aligned(load_aligned(tensor(i).shape_words() + word), kept + word);
        store_aligned(load_aligned(tensor(i).stride_words() + word), kept + kWords + word);
      }
    }
  }

  [[gnu::always_inline]] void set(CachedPlan& plan) const {
    opmux_arg* args = plan.args;
#pragma GCC unroll 4
    for (int i = 0; i < kTensors + kScalars; ++i) {
      std::memcpy(&args[i].value, &words[i], sizeof(uint64_t));
    }
  }
};

/// The instantiated combinations of tensors and scalars. Keep in sync with Packed::kInRegisters.
#define OPMUX_FOR_ARGUMENT_WORDS(entry)                                                           \
  entry(1, 0) entry(1, 1) entry(1, 2) entry(1, 3) entry(2, 0) entry(2, 1) entry(2, 2) entry(3, 0) \
      entry(3, 1) entry(4, 0)

}  // namespace opmux::dispatch
