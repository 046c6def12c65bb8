#include "dispatch/call/call.hpp"

#include "dispatch/call/argument_words.hpp"
#include "dispatch/call/attempt.hpp"
#include "dispatch/call/slow_call.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/cache_insert.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

/// Runs a plan whose frame is filled in and whose mark is in hazard slot 0. On success clears the
/// slot; on any other outcome recover() continues with the arguments in the plan's frame.
[[gnu::always_inline]] inline Status::Detail* run(ThreadBlock& block, CachedPlan& plan) {
  block.errors[0].text_size = 0;
  const int32_t outcome = plan.run(plan.user_data, &plan.call);
  if (outcome != OPMUX_OK) [[unlikely]] {
    return recover(plan, outcome);
  }
  plan.count->add_call();
  thread_block->clear(0);
  return nullptr;
}

/// run() for a plan whose mark is in another hazard slot, which stays set.
[[gnu::always_inline]] inline Status::Detail* run_nested(ThreadBlock& block, CachedPlan& plan,
                                                         uint32_t level) {
  block.errors[level].text_size = 0;
  plan.call.error = &block.errors[level];
  const int32_t outcome = plan.run(plan.user_data, &plan.call);
  Status::Detail* result = nullptr;
  if (outcome == OPMUX_OK) [[likely]] {
    plan.count->add_nested();
  } else {
    result = recover_nested(plan, outcome);
  }
  plan.call.error = &thread_block->errors[0];
  return result;
}

/// Stores the plan id in hazard slot 0. The store must precede the epoch load in current(): the
/// compiler fence keeps their order in the program, and the writer's membarrier orders them in
/// hardware (see ThreadBlock).
[[gnu::always_inline]] inline void mark(ThreadBlock& block, const CachedPlan& plan) {
  block.marks[0].store(plan.plan_id, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// True if the plan was built for this epoch, context and call site. Call it after mark(); while it
/// is true and the mark is set, everything the plan points to stays alive. The call site gives the
/// kinds of the arguments, so no argument may be read as a tensor before this check.
[[gnu::always_inline]] inline bool current(const CachedPlan& plan, const OperatorSlot& slot,
                                           const ThreadBlock& block, uint64_t site) {
  const uint64_t epoch = slot.epoch.load(std::memory_order_acquire);
  return ((plan.epoch ^ epoch) | (plan.context ^ block.context) | (plan.site.word() ^ site)) == 0;
}

/// True if the fast path may use this thread's plans for the operator. A mark in hazard slot 0
/// means a nested call; the frame of any plan of this thread may be in use then.
[[gnu::always_inline]] inline bool has_line(const ThreadBlock& block, const OperatorSlot& slot) {
  return slot.number < block.line_count && block.marks[0].load(std::memory_order_relaxed) == 0;
}

/// True if a current plan accepts these arguments. If their shapes differ from the last call, the
/// plan stores them for the next comparison.
bool takes(CachedPlan& plan, const ArgValue* values) {
  if (plan.lacks_data(values)) [[unlikely]]
    return false;
  if (plan.same_tensors(values) && (!plan.value_guarded || plan.same_values(values))) return true;
  const CachedPlan::Fit fit = plan.fit(values);
  if (fit == CachedPlan::Fit::no) return false;
  if (fit == CachedPlan::Fit::other_class && !plan.move_to_class(values)) return false;
  plan.remember(values);
  return true;
}

/// Copies the options of a call into a plan's frame. False if the number of threads differs,
/// because prepared states depend on it, or if the tag differs and the plan depends on it. The
/// other options may change from call to call.
bool takes_settings(CachedPlan& plan, const CallSettings& settings) {
  if (plan.call.max_threads != settings.max_threads) return false;
  if (plan.call.tag != settings.tag && !plan.any_tag) return false;
  // The workspace size may depend on whether the caller lends threads.
  if ((plan.call.parallel_for == nullptr) != (settings.parallel_for == nullptr)) return false;
  plan.call.tag = settings.tag;
  plan.call.stream = settings.stream;
  plan.call.parallel_for = settings.parallel_for;
  plan.call.pool = settings.pool;
  return true;
}

/// Finds the first plan of a ring that `accepts` takes: the plan of the last call, the one that ran
/// after it the last time, then the others. Calls that use several plans in turn find theirs at
/// the second try, in whatever order they were inserted.
template <class Accepts>
[[gnu::always_inline]] inline CachedPlan* find_after(CachedPlan& first, Accepts&& accepts) {
  CachedPlan* const follower = first.follower;
  if (follower != &first && accepts(*follower)) [[likely]]
    return follower;
  for (CachedPlan* plan = first.next_of_line; plan != &first; plan = plan->next_of_line) {
    if (plan == follower || !accepts(*plan)) continue;
    first.follower = plan;
    return plan;
  }
  return nullptr;
}
template <class Accepts>
[[gnu::always_inline]] inline CachedPlan* find_from(CachedPlan& first, Accepts&& accepts) {
  return accepts(first) ? &first : find_after(first, accepts);
}

/// Runs a cached plan in a call inside another call of this thread; false if none fits. The frames
/// of the calls around it stay untouched. Slow calls own the packed constants that they use and a
/// workspace, which a plan does not, so plans with these do not fit (CachedPlan::nests).
[[gnu::noinline]] bool call_nested(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                                   const CallSettings* settings, Status::Detail*& result) {
  ThreadBlock& block = *thread_block;
  const NestedCallGuard guard(block);
  if (!guard.usable()) return false;
  CachedPlan* const plan = find_from(*block.recent[slot.number], [&](CachedPlan& one) {
    guard.mark(one.plan_id);
    return current(one, slot, block, site.word()) && one.site == site && one.nests &&
           !in_use(block, one, guard.level()) &&
           (settings == nullptr || takes_settings(one, *settings)) && takes(one, values);
  });
  if (plan == nullptr) return false;
  block.recent[slot.number] = plan;
  plan->set_arguments(values);
  result = run_nested(block, *plan, guard.level());
  return true;
}

/// True if a plan for the original call site would be faster than this plan for the converted one:
/// its runs can convert ints to floats.
bool better_unconverted(const CachedPlan& plan, const CallSite& site) {
  if (plan.value_guarded) return false;
  for (uint32_t i = 0; i < site.count(); ++i) {
    const ArgTag given = site.tag(i), wanted = plan.site.tag(i);
    if (given != wanted && (given != ArgTag::integer || wanted != ArgTag::floating)) return false;
  }
  return true;
}

/// Runs the first cached plan of this operator in this thread that fits; false if none does. With
/// `settings`, only plans for calls with options fit. `original`, if not null, is the call site
/// before conversion; false if the slow path should make a plan for it.
[[gnu::always_inline]] inline bool call_cached(OperatorSlot& slot, const CallSite& site,
                                               const ArgValue* values, const CallSettings* settings,
                                               Status::Detail*& result,
                                               const CallSite* original = nullptr) {
  ThreadBlock& block = *thread_block;
  CachedPlan* const plan = find_from(*block.recent[slot.number], [&](CachedPlan& one) {
    mark(block, one);
    return current(one, slot, block, site.word()) && one.site == site &&
           (settings == nullptr || takes_settings(one, *settings)) && takes(one, values);
  });
  if (plan != nullptr && (original == nullptr || !better_unconverted(*plan, *original))) {
    block.recent[slot.number] = plan;
    plan->set_arguments(values);
    if (site.has_instance()) plan->set_instance(values);
    if (plan->pack_at < 0 || plan->load_pack(values)) {
      result = run(block, *plan);
      return true;
    }
  }
  block.clear(0);
  return false;
}

/// Continues a call that no cached plan fits. Plans have arguments of the kinds that the schema
/// demands, so a call that passes others, such as an int for a float, is converted and looked up
/// again. Otherwise it takes the slow path.
[[gnu::noinline]] Status::Detail* call_without_plan(OperatorSlot& slot, const CallSite& site,
                                                    const ArgValue* values,
                                                    const CallSettings* settings) noexcept {
  const ThreadBlock& block = *thread_block;
  const bool nested =
      slot.number < block.line_count && block.marks[0].load(std::memory_order_relaxed) != 0;
  Status::Detail* result = nullptr;
  if (nested && call_nested(slot, site, values, settings, result)) return result;
  CallSite exact;
  ArgValue converted[schema::kMaxValues];
  if (slot.number < block.line_count &&
      schema::convert_given(*slot.schema, site, values, exact, converted)) {
    if (nested && call_nested(slot, exact, converted, settings, result)) return result;
    if (!nested && call_cached(slot, exact, converted, settings, result, &site)) return result;
  }
  return call_slowly(slot, site, values, settings, nullptr);
}

/// Tries every cached plan of this operator in this thread, including for new shapes.
Status::Detail* call_any_plan(OperatorSlot& slot, const CallSite& site,
                              const ArgValue* values) noexcept {
  ThreadBlock& block = *thread_block;
  CachedPlan* const plan = find_from(*block.recent[slot.number], [&](CachedPlan& one) {
    mark(block, one);
    return current(one, slot, block, site.word()) && one.site == site && takes(one, values);
  });
  if (plan == nullptr) {
    block.clear(0);
    return call_without_plan(slot, site, values, nullptr);
  }
  block.recent[slot.number] = plan;
  plan->set_arguments(values);
  return run(block, *plan);
}

/// call_any_plan() for calls with options (flagged in `site`) or with a constant.
Status::Detail* call_any_plan_with(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                                   const CallSettings* settings) noexcept {
  Status::Detail* result = nullptr;
  if (call_cached(slot, site, values, settings, result)) [[likely]]
    return result;
  return call_without_plan(slot, site, values, settings);
}

/// Checks dimensions that differ from the last call one by one. True if this plan, or the plan of
/// the new shapes' class, is valid for them.
template <class Words>
[[gnu::noinline]] bool takes_dims(CachedPlan& plan, const Words& words) {
  ArgValue values[4];
  words.unpack(values);
  const ShapeProgram& program = plan.shapes->program;
  if (!program.usable || !program.holds(values)) return false;
  if (!program.same_class(values, plan.guard_values) && !plan.move_to_class(values)) return false;
  plan.varies_freely = plan.shapes->free.usable;
  return true;
}

/// True if a marked, current plan accepts views whose layout numbers it does not know: they have
/// the same shapes as last time, or other shapes that the plan is valid for.
template <int kWords, class Words>
[[gnu::always_inline]] inline bool takes_views(CachedPlan& plan, const Words& words) {
  ThreadBlock& block = *thread_block;
  if (!words.same_first_kind(plan)) return false;
  if (words.lacks_data()) [[unlikely]]
    return false;
  if (words.template same_tensors<kWords>(plan)) {
    words.share_layouts(plan, block);
    return true;
  }
  if (plan.declines->any() && words.template may_be_declined<kWords>(plan)) [[unlikely]]
    return false;
  const bool freely = plan.varies_freely && words.template differ_freely<kWords>(plan);
  if (!freely && !(words.template same_kinds<kWords>(plan) && takes_dims(plan, words)))
    return false;
  words.template remember<kWords>(plan);
  words.adopt_layouts(plan, block);
  return true;
}

template <class Words>
[[gnu::always_inline]] inline bool takes_views(CachedPlan& plan, const Words& words) {
  if (plan.compare == Comparison::pairs) return takes_views<2>(plan, words);
  return plan.compare == Comparison::quads && takes_views<4>(plan, words);
}

/// Finds the plan of the ring after `first` that ran with views of these layouts last, and marks
/// it; without one, `first` stays marked.
template <class Words>
[[gnu::always_inline]] inline CachedPlan* find_by_layouts(ThreadBlock& block, CachedPlan& first,
                                                          const OperatorSlot& slot, uint64_t site,
                                                          const Words& words) {
  return find_after(first, [&](CachedPlan& plan) {
    if (!words.same_layouts(plan)) return false;
    mark(block, plan);
    if (current(plan, slot, block, site)) return true;
    mark(block, first);
    return false;
  });
}

/// Finds a plan of the ring after `first` that accepts these views, and marks it.
template <class Words>
CachedPlan* find_by_shapes(ThreadBlock& block, CachedPlan& first, const OperatorSlot& slot,
                           uint64_t site, const Words& words) {
  return find_after(first, [&](CachedPlan& plan) {
    mark(block, plan);
    return current(plan, slot, block, site) && takes_views(plan, words);
  });
}

/// Third stage of call_words(), out of line: the plan is marked and current, but has not accepted
/// views with these layout numbers before.
template <class Words>
OPMUX_FIXED_STACK [[gnu::noinline]] Status::Detail* call_with_new_views(OperatorSlot& slot,
                                                                        uint64_t site, uint64_t a,
                                                                        uint64_t b, uint64_t c,
                                                                        uint64_t d) noexcept {
  const Words words{{a, b, c, d}};
  ThreadBlock& block = *thread_block;
  CachedPlan& first = *block.recent[slot.number];
  CachedPlan* plan =
      words.has_new_view() ? nullptr : find_by_layouts(block, first, slot, site, words);
  // The mark of `first` may be new, so that its epoch must be compared again.
  if (plan == nullptr && current(first, slot, block, site) && takes_views(first, words))
    plan = &first;
  if (plan == nullptr) plan = find_by_shapes(block, first, slot, site, words);
  if (plan != nullptr) [[likely]] {
    block.recent[slot.number] = plan;
    words.set(*plan);
    return run(block, *plan);
  }
  block.clear(0);
  ArgValue values[4];
  words.unpack(values);
  return call(slot, CallSite::from_word(site), values);
}

/// Second stage of call_words(), out of line: the plan is marked and current, but the views have
/// other layout numbers than in the last call. Shapes that the plan accepted before need no look at
/// declined calls: if one is declined later, this thread drops the plan (see recover()).
template <class Words>
OPMUX_FIXED_STACK [[gnu::noinline]] Status::Detail* call_with_other_views(OperatorSlot& slot,
                                                                          uint64_t site, uint64_t a,
                                                                          uint64_t b, uint64_t c,
                                                                          uint64_t d) noexcept {
  const Words words{{a, b, c, d}};
  ThreadBlock& block = *thread_block;
  CachedPlan& plan = *block.recent[slot.number];
  if (!words.met_before(plan, block)) return call_with_new_views<Words>(slot, site, a, b, c, d);
  words.set(plan);
  return run(block, plan);
}

/// Unpacks arguments from registers and takes the general path.
[[gnu::noinline]] Status::Detail* call_unpacked(OperatorSlot& slot, uint64_t site, uint64_t a,
                                                uint64_t b, uint64_t c, uint64_t d) noexcept {
  const uint64_t words[4] = {a, b, c, d};
  ArgValue values[4];
  std::memcpy(values, words, sizeof words);
  return call(slot, CallSite::from_word(site), values);
}

/// First stage of call_words() for a call inside another call of this thread: runs the plan of the
/// last call if it fits.
template <class Words>
OPMUX_FIXED_STACK [[gnu::noinline]] Status::Detail* call_words_nested(OperatorSlot& slot,
                                                                      uint64_t site, uint64_t a,
                                                                      uint64_t b, uint64_t c,
                                                                      uint64_t d) noexcept {
  const Words words{{a, b, c, d}};
  ThreadBlock& block = *thread_block;
  if (slot.number < block.line_count) {
    const NestedCallGuard guard(block);
    CachedPlan& plan = *block.recent[slot.number];
    if (guard.usable()) {
      guard.mark(plan.plan_id);
      if (current(plan, slot, block, site) && plan.nests && !in_use(block, plan, guard.level()) &&
          (words.same_layouts(plan) || takes_views(plan, words))) {
        words.set(plan);
        return run_nested(block, plan, guard.level());
      }
    }
  }
  return call_unpacked(slot, site, a, b, c, d);
}

}  // namespace

Status::Detail* call(OperatorSlot& slot, const CallSite& site, const ArgValue* values) noexcept {
  if (site.has_constant()) [[unlikely]]
    return call_with_constants(slot, site, values);
  if (has_line(*thread_block, slot)) [[likely]]
    return call_any_plan(slot, site, values);
  return call_without_plan(slot, site, values, nullptr);
}

Status::Detail* call_with_constants(OperatorSlot& slot, const CallSite& site,
                                    const ArgValue* values) noexcept {
  if (has_line(*thread_block, slot)) [[likely]]
    return call_any_plan_with(slot, site, values, nullptr);
  return call_without_plan(slot, site, values, nullptr);
}

Status::Detail* call_with(OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                          const CallSettings& given, CallReport* report) noexcept {
  const CallSite with_options = site.with_options();
  const CallSettings settings = given.with_threads_of(slot.engine->dependencies().threads);
  if (report == nullptr && has_line(*thread_block, slot)) [[likely]]
    return call_any_plan_with(slot, with_options, values, &settings);
  if (report == nullptr) return call_without_plan(slot, with_options, values, &settings);
  return call_slowly(slot, with_options, values, &settings, report);
}

template <int kTensors, int kScalars>
Status::Detail* call_words(OperatorSlot& slot, uint64_t site, uint64_t a, uint64_t b, uint64_t c,
                           uint64_t d) noexcept {
  using Words = ArgumentWords<kTensors, kScalars>;
  const Words words{{a, b, c, d}};
  ThreadBlock& block = *thread_block;
  if (!has_line(block, slot)) [[unlikely]] {
    return call_words_nested<Words>(slot, site, a, b, c, d);
  }
  CachedPlan& plan = *block.recent[slot.number];
  mark(block, plan);
  if (!current(plan, slot, block, site)) [[unlikely]] {
    block.clear(0);
    return call_unpacked(slot, site, a, b, c, d);
  }
  if (!words.same_layouts(plan)) [[unlikely]] {
    return call_with_other_views<Words>(slot, site, a, b, c, d);
  }
  words.set(plan);
  return run(block, plan);
}

#define OPMUX_ENTRY(tensors, scalars)                              \
  template OPMUX_API Status::Detail* call_words<tensors, scalars>( \
      OperatorSlot&, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) noexcept;
OPMUX_FOR_ARGUMENT_WORDS(OPMUX_ENTRY)
#undef OPMUX_ENTRY

}  // namespace opmux::dispatch
