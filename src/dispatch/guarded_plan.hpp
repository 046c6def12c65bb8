#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include <opmux/abi.h>
#include <opmux/call_site.hpp>

#include "dispatch/choice.hpp"

namespace opmux::dispatch {

using WordPair = uint64_t __attribute__((vector_size(16)));

inline WordPair load_pair(const void* from) {
  WordPair pair;
  std::memcpy(&pair, from, sizeof pair);
  return pair;
}

/// A plan with the facts it holds for, and the frame that a call fills in: what a thread keeps per
/// operator and what a bound plan consists of. Belongs to one thread at a time.
///
/// Fields are in the order in which a call touches them.
struct alignas(64) GuardedPlan {
  CallSite site;
  uint64_t epoch = 0;    ///< 0 never equals an operator's epoch
  uint64_t context = 0;  ///< scope and ambient facts it was decided for
  uint64_t plan_id = 0;
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
  std::atomic<uint64_t> calls{0};
  uint8_t tensor_count = 0;
  uint8_t arg_count = 0;       ///< that the site passes
  uint8_t rank_words = 2;      ///< 2, 4 or 8: words kept per shape and per strides
  bool value_guarded = false;  ///< some scalar, alignment or aliasing must be compared too
  bool exact_only = false;     ///< holds for exactly these shapes and strides
  bool exact_scalars = false;  ///< and for exactly these scalars

  opmux_call call{};
  opmux_arg* args = nullptr;
  uint64_t* exact = nullptr;  ///< per tensor: device, rank, dtype, shape, strides
  opmux_error error{};
  uint8_t tensor_at[OPMUX_MAX_ARGS] = {};  ///< argument index of each tensor

  // What the guard means; followed only while the epoch is current.
  const registry::DimChecks* checks = nullptr;
  const PlanRecord* plan = nullptr;
  const std::atomic<uint32_t>* declines = nullptr;  ///< of the operator's state
  std::shared_ptr<const Choice> pinned;             ///< of bound plans, which outlive an epoch
  const registry::Schema* schema = nullptr;
  int64_t guard_values[kMaxGuardFacts] = {};
  uint32_t aliases = 0;
  uint16_t room_for_args = 0, room_for_tensors = 0;  ///< of `args` and `exact`

  std::shared_ptr<ImplementationCounters> counters;
  std::atomic<const ImplementationCounters*> counted_for{
      nullptr};                         ///< for readers in other threads
  GuardedPlan* next_of_line = nullptr;  ///< ring of the plans of one operator in one thread
  GuardedPlan* next_of_thread = nullptr;

  /// The plan that nothing fits: what an operator's line holds before its first call.
  static GuardedPlan& none();

  /// The operator's epoch, the thread's context and the kinds of arguments are those it was made
  /// for.
  WordPair context_differs(uint64_t epoch_now, uint64_t context_now,
                           const CallSite& site_now) const {
    return (load_pair(&site) ^ load_pair(&site_now)) |
           (load_pair(&epoch) ^ WordPair{epoch_now, context_now});
  }

  /// Device, rank, element type, shape and strides of every tensor are those of the last call.
  bool same_tensors(const ArgValue* values) const {
    if (rank_words == 2) return same_words<2>(values);
    if (rank_words == 4) return same_words<4>(values);
    return same_words<8>(values);
  }

  /// The rest of an exact match: scalars, alignments and aliasing that the choice depends on.
  bool same_values(const ArgValue* values) const;

  /// Whether the plan holds for other shapes than the last: devices, ranks and element types equal,
  /// the schema's equalities and conditions hold, every fact it depends on is as it was.
  bool fits(const ArgValue* values) const;

  /// Keeps the shapes and strides of these arguments for the next comparison.
  void remember(const ArgValue* values);
  /// Keeps the facts of these arguments that the choice depends on.
  void keep_guard_values(const ArgValue* values);

  void set_arguments(const ArgValue* values) {
    for (uint32_t i = 0; i < arg_count; ++i) {
      std::memcpy(&args[i].value, &values[i], sizeof(ArgValue));
    }
    error.text_size = 0;
  }

  void count_call() {
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// Hands its counter over to the implementation's and counts for another from now on.
  void count_for(std::shared_ptr<ImplementationCounters> next);

 private:
  bool same_scalars(const ArgValue* values) const;

  template <int kWords>
  bool same_words(const ArgValue* values) const {
    WordPair differs{};
    const uint64_t* kept = exact;
    for (uint32_t i = 0; i < tensor_count; ++i) {
      const TensorView& tensor = *values[tensor_at[i]].tensor;
      differs |= load_pair(kept) ^ load_pair(&tensor.c().device);
      for (int word = 0; word < kWords; word += 2) {
        differs |= load_pair(kept + 2 + word) ^ load_pair(tensor.shape_words() + word);
        differs |= load_pair(kept + 2 + kWords + word) ^ load_pair(tensor.stride_words() + word);
      }
      kept += 2 + 2 * kWords;
    }
    return (differs[0] | differs[1]) == 0;
  }
};

static_assert(offsetof(opmux_tensor, device) == 8 && offsetof(opmux_tensor, shape) == 24,
              "device, rank and element type are compared as one pair of words");

}  // namespace opmux::dispatch
