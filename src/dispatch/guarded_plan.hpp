#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <opmux/abi.h>
#include <opmux/call_site.hpp>

#include "dispatch/choice.hpp"
#include "dispatch/class_layout.hpp"
#include "dispatch/free_dims.hpp"
#include "dispatch/met_layouts.hpp"
#include "dispatch/shape_checks.hpp"

namespace opmux::dispatch {

class DecisionSpace;
struct OperatorSlot;

/// How a plan compares tensors with those of the last call: in words per shape, or not in one go
/// (ranks above 4; scalars, alignments or aliasing that count).
enum class Comparison : uint8_t { pairs, quads, otherwise };

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

  /// Of the views of the last call, as TensorView::layout numbers them.
  uint64_t layouts[kMaxLayouts] = {kNoLayout, kNoLayout, kNoLayout, kNoLayout};
  opmux_arg* args = nullptr;
  uint64_t* exact = nullptr;  ///< per tensor: device, rank, dtype, shape, strides
  Comparison compare = Comparison::otherwise;
  uint8_t tensor_count = 0;
  uint8_t arg_count = 0;       ///< that the site passes
  uint8_t rank_words = 2;      ///< 2, 4 or 8: words kept per shape and per strides
  bool value_guarded = false;  ///< some scalar, alignment or aliasing must be compared too
  bool exact_only = false;     ///< holds for exactly these shapes and strides
  bool exact_scalars = false;  ///< and for exactly these scalars
  opmux_error error{};
  opmux_call call{};
  uint8_t tensor_at[OPMUX_MAX_ARGS] = {};  ///< argument index of each tensor

  uint64_t exact_layouts[kMaxLayouts] = {};  ///< of what `exact` keeps; kNoLayout: none yet
  MetLayouts* met = nullptr;
  bool varies_freely = false;  ///< `free` can be used from the shapes that are kept now
  FreeDims free;
  ShapeProgram program;    ///< the whole guard in a few steps, if it can be said so
  int8_t pack_at = -1;     ///< argument whose packed copy it runs with; -1: none
  bool with_pack = false;  ///< prepared for one; without if there was no room for it

  // What the guard means; followed only while the epoch is current.
  const ShapeChecks* checks = nullptr;
  const PlanRecord* plan = nullptr;
  const DecisionSpace* space = nullptr;             ///< null if it stays with its class
  ClassKey kinds;                                   ///< how the keys of its classes start
  ClassKey of_class;                                ///< that it moved to last
  const std::atomic<uint32_t>* declines = nullptr;  ///< of the operator's state
  std::shared_ptr<const Choice> pinned;             ///< of bound plans, which outlive an epoch
  OperatorSlot* slot = nullptr;
  const registry::Schema* schema = nullptr;
  int64_t guard_values[kMaxGuardFacts] = {};
  uint32_t aliases = 0;
  uint16_t room_for_args = 0, room_for_tensors = 0;  ///< of `args` and `exact`

  std::shared_ptr<ImplementationCounters> counters;
  /// For readers in other threads.
  std::atomic<const ImplementationCounters*> counted_for{nullptr};
  GuardedPlan* next_of_line = nullptr;  ///< ring of the plans of one operator in one thread
  GuardedPlan* next_of_thread = nullptr;

  /// The plan that nothing fits: what an operator's line holds before its first call.
  static GuardedPlan& none();

  /// Device, rank, element type, shape and strides of every tensor are those of the last call.
  bool same_tensors(const ArgValue* values) const;

  /// The rest of an exact match: scalars, alignments and aliasing that the choice depends on.
  bool same_values(const ArgValue* values) const;

  /// What a change of shapes leaves of the guard.
  enum class Fit : uint8_t {
    no,          ///< other kinds of tensors, or the schema's conditions do not hold
    same_class,  ///< every fact that the choice depends on is as it was
    other_class  ///< some fact differs: the class decides
  };
  Fit fit(const ArgValue* values) const;

  /// From now on only for exactly the shapes that are kept.
  void hold_exactly() {
    exact_only = true;
    varies_freely = program.usable = free.usable = false;
    *met = {};
  }

  void choose_comparison() {
    compare = value_guarded || rank_words == 8 ? Comparison::otherwise
              : rank_words == 2                ? Comparison::pairs
                                               : Comparison::quads;
  }

  /// Once anything was declined, who runs depends on the exact arguments.
  bool nothing_declined() const {
    return declines == nullptr || declines->load(std::memory_order_relaxed) == 0;
  }

  /// Whether the plan of another class of this operator can be kept here as it is: same candidate,
  /// without prepared state. Then takes its place.
  bool move_to_class(const ArgValue* values);

  /// pack_at where it is known not to be negative.
  uint32_t pack_index() const { return static_cast<uint32_t>(pack_at); }
  /// Puts the packed copy of the constant among these arguments into the frame, and makes it if
  /// that was not done yet. False if it cannot be had, or is not what the plan was prepared for.
  /// The frame holds the arguments; the thread has a mark.
  bool load_pack(const ArgValue* values);

  /// Keeps the shapes and strides of these arguments for the next comparison.
  void remember(const ArgValue* values);
  /// May move to other classes of this space from now on.
  void move_within(const DecisionSpace* classes, const ArgValue* values);
  /// Keeps the facts of these arguments that the choice depends on.
  void keep_guard_values(const ArgValue* values);

  void set_arguments(const ArgValue* values) {
    for (uint32_t i = 0; i < arg_count; ++i) set_argument(i, values[i]);
    error.text_size = 0;
  }
  void set_argument(size_t i, const ArgValue& value) {
    std::memcpy(&args[i].value, &value, sizeof value);
  }
  /// What the frame holds, as a call passed it.
  void get_arguments(ArgValue* values) const;

  void count_call() {
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Hands its counter over to the implementation's and counts for another from now on.
  void count_for(std::shared_ptr<ImplementationCounters> next);

  /// Compares one tensor with what is kept of it.
  template <int kWords>
  static WordPair tensor_differs(const uint64_t* kept, const TensorView& tensor) {
    WordPair differs = load_pair(&tensor.c().device) ^ load_aligned(kept);
    for (int word = 0; word < kWords; word += 2) {
      differs |= load_aligned(kept + 2 + word) ^ load_aligned(tensor.shape_words() + word);
      differs |=
          load_aligned(kept + 2 + kWords + word) ^ load_aligned(tensor.stride_words() + word);
    }
    return differs;
  }

 private:
  bool take_plan_of(const ClassKey& key);
  bool same_scalars(const ArgValue* values) const;
};

static_assert(offsetof(opmux_tensor, device) == 8 && offsetof(opmux_tensor, shape) == 24,
              "device, rank and element type are compared as one pair of words");

}  // namespace opmux::dispatch
