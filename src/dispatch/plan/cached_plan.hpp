#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <opmux/abi.h>
#include <opmux/detail/call_site.hpp>

#include "dispatch/call/plan_counts.hpp"
#include "dispatch/call/thread_workspace.hpp"
#include "dispatch/decide/class_layout.hpp"
#include "dispatch/decide/decision.hpp"
#include "dispatch/decide/declines.hpp"
#include "dispatch/plan/exact_words.hpp"
#include "dispatch/plan/free_dims.hpp"
#include "dispatch/plan/prepared_cache.hpp"
#include "dispatch/plan/shape_checks.hpp"

/// For functions on the warm path that copy arguments of a call to the stack. A stack protector
/// would cost up to a tenth of the call, and it protects nothing: the copies have a fixed size.
#define OPMUX_FIXED_STACK [[gnu::no_stack_protector]]

namespace opmux::dispatch {

class DecisionCache;
struct CachedPlan;
struct OperatorSlot;
struct ThreadBlock;

/// How a plan compares tensors with those of the last call: in two or four words per shape, or by
/// the general path (ranks above 4, or guards on scalars, alignment or aliasing).
enum class Comparison : uint8_t { pairs, quads, otherwise };

/// The part of a plan whose implementation has workspace(); see give_workspace().
struct PlanWorkspace {
  registry::RunEntry kernel;  ///< the entry behind CachedPlan::run
  /// Per argument: alignment or scalar that workspace() was shown.
  std::unique_ptr<uint64_t[]> words;
  uint64_t pack_serial = 0;        ///< PlanExtras::pack_serial that workspace() was shown
  WorkspaceBuffer* own = nullptr;  ///< null: the workspace belongs to the thread
  /// ThreadWorkspace::version() of the thread; a constant for a plan with `own`.
  const std::atomic<uint64_t>* current_version = nullptr;
  uint64_t version = 0;  ///< the version for which the workspace in the frame is valid
};

/// The part of a plan whose calls are timed; see time_calls().
struct PlanTimer {
  registry::RunEntry kernel;   ///< the entry behind CachedPlan::run
  uint32_t untimed = 0;        ///< calls until the next one is timed
  CachedPlan* plan = nullptr;  ///< the plan that contains this part
};

/// The parts of a plan that few plans need.
struct PlanExtras {
  PreparedPtr prepared;      ///< owns call.prepared; null in a bound plan, which owns it elsewhere
  uint64_t pack_serial = 0;  ///< Pack::serial() of the instance in the frame; 0: none
  PlanWorkspace workspace;
  PlanTimer timer;
  registry::RunEntry unconverted;  ///< the entry behind CachedPlan::run; see float_from_int
};

/// The classes of calls between which a plan moves; see CachedPlan::move_to_class().
struct PlanClasses {
  ClassKey kinds;     ///< first part of the class key, fixed by argument kinds
  ClassKey of_class;  ///< class that the plan moved to last
};

/// A cached plan: the guard that says which calls it is valid for, and the call frame that each
/// call fills in. Threads cache up to sixteen per operator; a BoundPlan contains one.
///
/// Used by one thread at a time. Other threads read only `count`.
/// Pointers into the CompiledOperator (`checks`, `plan`, `space`, `declines`) may be followed only
/// after the epoch was compared under a mark, because the state may otherwise be freed. A BoundPlan
/// owns these objects or pins them instead.
///
/// Fields are in the order in which a call touches them. A process may have hundreds of thousands
/// of plans (threads x operators x classes), so parts that few plans need are allocated on demand.
struct alignas(64) CachedPlan {
  CallSite site;
  uint64_t epoch = 0;    ///< 0: stale; the epoch of a published operator is never 0
  uint64_t context = 0;  ///< scope and ambient facts of the decision
  uint64_t plan_id = 0;
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
  PlanCount* count = nullptr;  ///< null in a bound plan, which counts in HotPlan::calls

  /// Layout numbers (TensorView::layout) of the views of the last call.
  uint64_t layouts[kMaxLayouts] = {kNoLayout, kNoLayout, kNoLayout, kNoLayout};
  opmux_arg* args = nullptr;
  uint64_t* exact = nullptr;  ///< per tensor: device, rank, dtype, shape, strides
  Comparison compare = Comparison::otherwise;
  uint8_t tensor_count = 0;
  uint8_t arg_count = 0;       ///< number of arguments that the call site passes
  uint8_t rank_words = 2;      ///< 2, 4 or 8: words stored per shape and per strides
  bool value_guarded = false;  ///< scalars, alignments or aliasing must be compared too
  bool exact_only = false;     ///< valid only for exactly these shapes and strides
  bool exact_scalars = false;  ///< valid only for exactly these scalars
  bool any_tag = false;        ///< valid for calls with another tag
  const ShapeGuard* shapes = &kNoOtherShapes;
  opmux_call call{};  ///< its `error` belongs to the thread or to the bound plan

  uint64_t exact_layouts[kMaxLayouts] = {};  ///< layout numbers of `exact`; kNoLayout: none yet
  uint64_t met_key = 0;                      ///< marks the plan's entries in ThreadBlock::met
  std::unique_ptr<PlanExtras> extras;        ///< null: none is needed
  std::unique_ptr<PlanClasses> classes;      ///< null if `space` is
  bool varies_freely = false;                ///< `shapes->free` applies to the shapes in `exact`
  /// Index of the constant whose packed copy is used, or of the instance; -1: none.
  int8_t pack_at = -1;
  bool with_pack = false;  ///< prepared with a pack; false if the budget had no room for one
  bool nests = false;      ///< may run inside another call; see call_nested()
  /// Bit i: the call site passes an int for argument i, and the schema has a float. The run
  /// function converts it in the frame; see convert_floats().
  uint32_t float_from_int = 0;

  // The guard. May be followed only while the epoch is current.
  const ShapeChecks* checks = nullptr;
  const RankedCandidate* plan = nullptr;
  const DecisionCache* space = nullptr;  ///< where move_to_class() looks; null: it may not move
  const Declines* declines = nullptr;    ///< CompiledOperator::declines(); null in a bound plan
  OperatorSlot* slot = nullptr;
  int64_t* guard_values = nullptr;  ///< the guard facts of the last call
  uint32_t aliases = 0;             ///< bit i: argument i starts where its `alias_of` argument does
  /// Capacities of `args`, `exact` (in words) and `guard_values`.
  uint16_t room_for_args = 0, room_for_exact = 0, room_for_guards = 0;

  CachedPlan* next_of_line = nullptr;    ///< ring of the plans of one operator in one thread
  CachedPlan* follower = this;           ///< plan of the ring that ran after this one the last time
  CachedPlan* next_of_thread = nullptr;  ///< next in ThreadBlock::all_plans

  /// Index of the argument of each tensor. The bytes follow `guard_values`.
  uint8_t* tensor_at() { return reinterpret_cast<uint8_t*>(guard_values + room_for_guards); }
  const uint8_t* tensor_at() const {
    return reinterpret_cast<const uint8_t*>(guard_values + room_for_guards);
  }

  /// A plan that accepts no call; `recent` points to it before an operator's first call.
  static CachedPlan& none();

  /// True if a tensor has elements and a null data pointer. No plan may run with it. Views with a
  /// layout number need no look: TensorView::set_data() drops the number with the data.
  bool lacks_data(const ArgValue* values) const {
    bool found = false;
    for (uint32_t i = 0; i < tensor_count; ++i) {
      found |= schema::lacks_data(*values[tensor_at()[i]].tensor);
    }
    return found;
  }

  /// True if device, rank, element type, shape and strides of every tensor match the last call.
  bool same_tensors(const ArgValue* values) const;

  /// The rest of an exact match: compares the scalars, alignments and aliasing in the guard.
  bool same_values(const ArgValue* values) const;

  /// Result of checking new shapes against the guard.
  enum class Fit : uint8_t {
    no,          ///< other kinds of tensors, or a check of the schema fails
    same_class,  ///< every fact that the choice depends on is unchanged
    other_class  ///< some fact differs; the decision for the new class applies
  };
  Fit fit(const ArgValue* values) const;

  /// Restricts the plan to exactly the shapes in `exact`.
  void hold_exactly() {
    exact_only = true;
    varies_freely = false;
    shapes = &kNoOtherShapes;
    forget_layouts();
  }

  /// Forgets the layouts that the plan is known to accept.
  void forget_layouts();

  /// Returns `extras`, which it allocates if needed.
  PlanExtras& with_extras() {
    if (extras == nullptr) extras = std::make_unique<PlanExtras>();
    return *extras;
  }

  void choose_comparison() {
    compare = value_guarded || rank_words == 8 ? Comparison::otherwise
              : rank_words == 2                ? Comparison::pairs
                                               : Comparison::quads;
  }

  /// True if a call of the operator with these shapes may have been declined: the choice then
  /// depends on the exact arguments, which only the slow path looks up.
  bool may_be_declined(const ArgValue* values) const {
    return declines != nullptr && declines->any() && declines->may_have(shape_hash_of(values));
  }

  /// Switches to the plan of the class of these arguments. Returns false unless that class is
  /// already decided for the same candidate and the candidate has no prepared state. The thread's
  /// mark stays valid, because plan ids of one state share its serial.
  bool move_to_class(const ArgValue* values);

  /// `pack_at` as an index. Requires pack_at >= 0.
  uint32_t pack_index() const { return static_cast<uint32_t>(pack_at); }
  /// Puts the packed copy of the constant among these arguments into the frame; packs it first if
  /// needed. False if packing fails, or if the plan was prepared with a pack and there is none, or
  /// the reverse. The frame must hold the arguments, and the thread must have a mark set.
  bool load_pack(const ArgValue* values);

  /// Stores the shapes and strides of these arguments for the next comparison.
  void remember(const ArgValue* values);
  /// Lets the plan move to other classes of this space; null forbids it.
  void move_within(const DecisionCache* of_operator, const ArgValue* values);
  /// Stores the guard facts of these arguments.
  void keep_guard_values(const ArgValue* values);

  void set_arguments(const ArgValue* values) {
    for (uint32_t i = 0; i < arg_count; ++i) set_argument(i, values[i]);
  }
  void set_argument(size_t i, const ArgValue& value) {
    std::memcpy(&args[i].value, &value, sizeof value);
  }
  /// Keeps the instance that a call goes through, which recover() needs, behind the arguments.
  void set_instance(const ArgValue* values) { set_argument(call.arg_count, values[arg_count]); }
  /// Copies the arguments of the last call, and its instance, out of the frame. frame_site() has
  /// their kinds.
  void get_arguments(ArgValue* values) const;
  CallSite frame_site() const;

  /// Starts counting for `next`. Calls that were counted for another implementation move to
  /// `owner.kept_counts`; `owner` is the block of the thread that the plan belongs to.
  void count_for(std::shared_ptr<ImplementationCounters> next, ThreadBlock& owner);

  /// Compares one tensor with its words in `exact`; all zero if they are equal.
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
  uint64_t shape_hash_of(const ArgValue* values) const;
  /// move_to_class(), which throws std::bad_alloc before it changes the plan.
  bool try_to_move(const ArgValue* values);
  bool take_plan_of(const ClassKey& key);
  bool same_scalars(const ArgValue* values) const;
};

static_assert(sizeof(CachedPlan) == 384, "the size of a thread's plans; see bench_scale");
static_assert(offsetof(opmux_tensor, device) == 8 && offsetof(opmux_tensor, shape) == 24,
              "device, rank and element type are compared as one pair of words");

}  // namespace opmux::dispatch
