#include "dispatch/plan/cache_insert.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "dispatch/call/call_frame.hpp"
#include "dispatch/plan/packed_constant.hpp"
#include "dispatch/plan/plan_ids.hpp"
#include "dispatch/plan/plan_workspace.hpp"
#include "dispatch/plan/timed_run.hpp"

namespace opmux::dispatch {
namespace {

/// A transformer layer calls one operator with about five weights in turn, and a server with some
/// more shapes.
constexpr int kPlansPerLine = 16;

uint8_t words_for(const schema::Arguments& arguments) {
  int rank = 0;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor) {
      rank = std::max(rank, arguments.values[i].tensor->rank());
    }
  }
  return rank <= 2 ? 2 : rank <= 4 ? 4 : 8;
}

CachedPlan* new_plan(ThreadBlock& block) {
  void* const memory = block.plan_memory.take(sizeof(CachedPlan), alignof(CachedPlan));
  PlanCount& count = block.counts.add();
  auto* const plan = new (memory) CachedPlan;
  plan->count = &count;
  plan->next_of_thread = block.all_plans;
  block.all_plans = plan;
  return plan;
}

/// True if neither the decision nor what the implementation keeps depends on the tag.
bool ignores_tag(const registry::ImplementationRecord& implementation, const DecisionCache* space) {
  if (space == nullptr || space->reads_tag()) return false;
  if (implementation.kernel.workspace != nullptr) return false;
  if (implementation.kernel.plan == nullptr) return true;
  return implementation.plan_reads &&
         std::ranges::find(*implementation.plan_reads, schema::FactKind::tag,
                           &schema::Fact::kind) == implementation.plan_reads->end();
}

/// Adds a plan to the thread's ring of the operator.
CachedPlan& add_to_line(ThreadBlock& block, const OperatorSlot& slot) {
  CachedPlan* const first = block.recent[slot.number];
  CachedPlan* const plan = new_plan(block);
  const bool alone = first == &CachedPlan::none();
  plan->next_of_line = alone ? plan : first->next_of_line;
  (alone ? block.recent[slot.number] : first->next_of_line) = plan;
  return *plan;
}

/// Returns the plan to overwrite: a stale plan of the ring, else a new plan while the ring has
/// fewer than kPlansPerLine, else the successor of the most recently used plan.
CachedPlan& place_in_line(ThreadBlock& block, OperatorSlot& slot) {
  CachedPlan* first = block.recent[slot.number];
  const uint64_t epoch = slot.epoch.load(std::memory_order_relaxed);
  if (first != &CachedPlan::none()) {
    int count = 0;
    CachedPlan* at = first;
    do {
      if (at->epoch != epoch) return *at;
      at = at->next_of_line;
      ++count;
    } while (at != first);
    if (count == kPlansPerLine) return *first->next_of_line;
  }
  return add_to_line(block, slot);
}

/// Whether calls compare an argument with that of the last call as a tensor. A scalar that is
/// opmux::none is passed as an absent tensor.
bool compared_as_tensor(const schema::Schema& schema, const CallSite& site, uint32_t i) {
  return schema.args[i].is_tensor() || site.tag(i) == ArgTag::tensor;
}

bool is_int_for_float(const CacheInsert& what, uint32_t i) {
  return i < what.site->count() && what.site->tag(i) == ArgTag::integer &&
         what.arguments->tags[i] == ArgTag::floating;
}

/// True if the guard of the plan compares no scalars, which it would read as the schema has them.
bool compares_no_values(const CacheInsert& what) {
  return !what.exact_only && what.plan->candidate->guard.value.empty();
}

/// The run function of a plan whose call site passes ints for floats. `self` is the plan.
int32_t run_with_floats(void* self, const opmux_call* call) {
  const CachedPlan& plan = *static_cast<const CachedPlan*>(self);
  for (uint32_t left = plan.float_from_int; left != 0; left &= left - 1) {
    opmux_value& value = plan.args[std::countr_zero(left)].value;
    value.f64 = static_cast<double>(value.i64);
  }
  const registry::RunEntry& kernel = plan.extras->unconverted;
  return kernel.run(kernel.user_data, call);
}

/// Lets runs of the plan convert the arguments in float_from_int.
void convert_floats(CachedPlan& plan) {
  plan.with_extras().unconverted = {plan.run, plan.user_data};
  plan.run = run_with_floats;
  plan.user_data = &plan;
}

/// True if a plan of the state that allocated this id is in one of the first `levels` hazard slots
/// of the thread.
bool state_in_use(const ThreadBlock& block, uint64_t plan_id, uint32_t levels = kMaxDepth) {
  for (uint32_t level = 0; level < levels; ++level) {
    const uint64_t mark = block.marks[level].load(std::memory_order_relaxed);
    if (mark == 0) return false;
    if ((mark & kColdBit) == 0 && PlanIds::same_state(mark, plan_id)) return true;
  }
  return false;
}

/// As place_in_line(), for a call inside another one; null if there is no place, or if a call of
/// this operator is running.
CachedPlan* place_nested(ThreadBlock& block, OperatorSlot& slot, const RankedCandidate& chosen) {
  if (state_in_use(block, chosen.id)) return nullptr;
  CachedPlan* const first = block.recent[slot.number];
  const uint64_t epoch = slot.epoch.load(std::memory_order_relaxed);
  if (first == &CachedPlan::none()) return &add_to_line(block, slot);
  CachedPlan* stale = nullptr;
  int count = 0;
  CachedPlan* at = first;
  do {
    if (in_use(block, *at, kMaxDepth)) return nullptr;
    if (at->epoch != epoch && at->count->counters == chosen.candidate->counters) stale = at;
    at = at->next_of_line;
    ++count;
  } while (at != first);
  return stale != nullptr || count == kPlansPerLine ? stale : &add_to_line(block, slot);
}

}  // namespace

bool in_use(const ThreadBlock& block, const CachedPlan& plan, uint32_t level) {
  return state_in_use(block, plan.plan_id, level);
}

bool can_be_kept(const schema::Schema& schema, const CacheInsert& what, bool converts) {
  // Transforms make copies per call, which needs a frame per call.
  if (what.plan->candidate->guard.too_many || what.plan->transforms.any()) return false;
  for (uint32_t i = 0; i < what.arguments->count; ++i) {
    if (what.arguments->tags[i] >= ArgTag::string) return false;
    if (i >= what.site->count()) continue;
    const ArgTag given = what.site->tag(i);
    const ArgTag wanted = what.arguments->tags[i];
    const bool number_for_enum = given == ArgTag::integer && wanted == ArgTag::enumeration;
    // opmux::none is passed as an absent tensor, whatever the argument's type.
    const bool absent = given == ArgTag::tensor && wanted == ArgTag::none;
    const bool constant = given == ArgTag::constant && wanted == ArgTag::tensor;
    const bool converted = converts && is_int_for_float(what, i) && compares_no_values(what);
    if (given != wanted && !number_for_enum && !absent && !constant && !converted) return false;
  }
  return schema.args.size() == what.arguments->count;
}

PlanRoom PlanRoom::of(const schema::Schema& schema, const CallSite& site,
                      const schema::Arguments& arguments, size_t guards) {
  size_t tensors = 0;
  for (uint32_t i = 0; i < site.count(); ++i)
    tensors += compared_as_tensor(schema, site, i) ? 1 : 0;
  const size_t args = schema.args.size() + (site.has_instance() ? 1 : 0);
  return {args, tensors * (2 + 2 * size_t{words_for(arguments)}), guards};
}

bool PlanRoom::is_in(const CachedPlan& plan) const {
  return plan.room_for_args >= args && plan.room_for_exact >= exact &&
         plan.room_for_guards >= guards;
}

void PlanRoom::give_to(CachedPlan& plan, void* memory) const {
  auto* const start = static_cast<std::byte*>(memory);
  plan.args = reinterpret_cast<opmux_arg*>(start);
  plan.exact = reinterpret_cast<uint64_t*>(start + args * sizeof(opmux_arg));
  plan.guard_values = reinterpret_cast<int64_t*>(plan.exact + exact);
  plan.room_for_args = static_cast<uint16_t>(args);
  plan.room_for_exact = static_cast<uint16_t>(exact);
  plan.room_for_guards = static_cast<uint16_t>(guards);
}

void fill_plan(CachedPlan& plan, const schema::Schema& schema, const ShapeChecks& checks,
               ShapeGuards& guards, const CacheInsert& what, opmux_error& error) {
  // Bypass the tap during graph capture: the captured kernel runs later, without the host.
  const bool captured = (what.context & schema::kCapturing) != 0;
  CallTap* const tap = captured ? nullptr : what.plan->candidate->tap.get();
  const registry::RunEntry& entry =
      tap == nullptr ? what.plan->candidate->implementation->run_entry() : tap->entry();
  plan.site = *what.site;
  plan.context = what.context;
  plan.plan_id = what.plan->id;
  plan.run = entry.run;
  plan.user_data = entry.user_data;
  plan.arg_count = static_cast<uint8_t>(what.site->count());
  plan.float_from_int = 0;
  for (uint32_t i = 0; i < plan.arg_count; ++i) {
    if (is_int_for_float(what, i)) plan.float_from_int |= uint32_t{1} << i;
  }
  plan.rank_words = words_for(*what.arguments);
  plan.exact_only = what.exact_only || what.plan->candidate->guard.exact_only;
  plan.tensor_count = 0;
  bool aliasing = false;
  for (uint8_t i = 0; i < plan.arg_count; ++i) {
    if (!compared_as_tensor(schema, plan.site, i)) continue;
    plan.tensor_at()[plan.tensor_count++] = i;
    aliasing |= schema.args[i].alias_of >= 0;
  }
  plan.exact_scalars = what.exact_only;
  plan.any_tag = ignores_tag(*what.plan->candidate->implementation, what.space);
  plan.value_guarded = aliasing || plan.exact_scalars || !what.plan->candidate->guard.value.empty();
  plan.choose_comparison();
  plan.checks = &checks;
  plan.shapes = &kNoOtherShapes;
  plan.forget_layouts();
  if (!plan.exact_only && !plan.value_guarded) {
    const std::vector<schema::Fact>& facts = what.plan->candidate->guard.shape;
    plan.shapes = &guards.keep({FreeDims::compile(schema, checks, *what.arguments, facts),
                                ShapeProgram::compile(schema, checks, *what.arguments, facts)});
  }
  plan.plan = what.plan;
  fill_args(schema, *what.arguments, plan.args);
  fill_call(schema, *what.arguments, what.settings, plan.args, &error, plan.call);
  if (what.prepared != nullptr) plan.call.prepared = what.prepared->get();
  if (plan.site.has_instance()) plan.set_instance(what.values);
  const int packed =
      packed_argument(*what.plan->candidate->implementation, schema, *what.arguments);
  // The values of a call have the instance behind the arguments that it passes.
  const bool instance = packed == static_cast<int>(what.arguments->count);
  plan.pack_at = static_cast<int8_t>(instance ? plan.arg_count : packed);
  plan.call.instance = what.pack != nullptr ? what.pack->instance() : nullptr;
  if (what.prepared != nullptr || plan.pack_at >= 0 || plan.extras != nullptr) {
    PlanExtras& extras = plan.with_extras();
    extras.prepared = what.prepared;
    extras.pack_serial = what.pack != nullptr ? what.pack->serial() : 0;
  }
  plan.nests = plan.pack_at < 0 && !plan.site.has_instance() &&
               what.plan->candidate->implementation->kernel.workspace == nullptr;
  plan.with_pack = plan.call.instance != nullptr;
  plan.remember(what.values);
  plan.keep_guard_values(what.values);
}

void install(ThreadBlock& block, OperatorSlot& slot, CompiledOperator& state,
             const CacheInsert& what, bool nested) {
  const schema::Schema& schema = state.schema();
  if (!can_be_kept(schema, what, true)) return;
  // A call around this one may use the workspace of the thread.
  if (nested && what.plan->candidate->implementation->kernel.workspace != nullptr) return;
  reserve_lines(block, slot.number + 1);
  CachedPlan* const place =
      nested ? place_nested(block, slot, *what.plan) : &place_in_line(block, slot);
  if (place == nullptr) return;
  CachedPlan& plan = *place;
  plan.epoch = 0;
  const PlanRoom room =
      PlanRoom::of(schema, *what.site, *what.arguments, what.plan->candidate->guard.count());
  if (!room.is_in(plan)) room.give_to(plan, block.plan_memory.take(room.bytes(), PlanRoom::kAlign));
  plan.count_for(what.plan->candidate->counters, block);
  plan.declines = &state.declines();
  plan.slot = &slot;
  fill_plan(plan, schema, state.checks_for(*what.arguments), state.shape_guards(), what,
            block.errors[0]);
  plan.move_within(what.space, what.values);
  // Without memory for the workspace the plan stays stale. The next call takes the slow path, which
  // can fall back.
  const bool enough = what.plan->candidate->implementation->kernel.workspace == nullptr ||
                      give_workspace(plan, nullptr);
  if (what.plan->candidate->timer != nullptr) time_calls(plan);
  // Last, so that it runs first: the others read the frame.
  if (plan.float_from_int != 0) convert_floats(plan);
  block.recent[slot.number] = &plan;
  // After every step that may fail: a stale plan never runs.
  if (enough) plan.epoch = what.epoch;
}

}  // namespace opmux::dispatch
