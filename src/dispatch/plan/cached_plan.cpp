#include "dispatch/plan/cached_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "base/memory.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/decide/decision_cache.hpp"
#include "dispatch/decide/raw_facts.hpp"
#include "dispatch/plan/packed_constant.hpp"

namespace opmux::dispatch {
namespace {

using schema::Fact;

template <int kWords>
bool same_words(const CachedPlan& plan, const ArgValue* values) {
  WordPair differs{};
  const uint64_t* kept = plan.exact;
  for (uint32_t i = 0; i < plan.tensor_count; ++i) {
    differs |= CachedPlan::tensor_differs<kWords>(kept, *values[plan.tensor_at()[i]].tensor);
    kept += 2 + 2 * kWords;
  }
  return is_zero(differs);
}

uint32_t aliases_of(const schema::Schema& schema, size_t count, const ArgValue* values) {
  uint32_t mask = 0;
  for (size_t i = 0; i < count; ++i) {
    const int other = schema.args[i].alias_of;
    if (other < 0 || static_cast<size_t>(other) >= count) continue;
    if (values[i].tensor->same_start(*values[other].tensor)) mask |= 1u << i;
  }
  return mask;
}

bool where_holds(const CachedPlan& plan, const ArgValue* values) {
  const schema::Schema& schema = *plan.slot->schema;
  if (schema.where.empty()) return true;
  std::array<int64_t, schema::kMaxDims> dims;
  for (size_t d = 0; d < schema.dims.size(); ++d) dims[d] = plan.checks->dim(d, values);
  std::array<int64_t, OPMUX_MAX_ARGS> scalars;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    scalars[i] = i < plan.arg_count ? values[i].i64 : plan.args[i].value.i64;
  }
  for (const schema::WhereExpression& condition : schema.where) {
    if (!condition.holds({dims.data(), schema.dims.size()}, {scalars.data(), schema.args.size()})) {
      return false;
    }
  }
  return true;
}

bool same_kinds(const CachedPlan& plan, const ArgValue* values) {
  const uint64_t* kept = plan.exact;
  WordPair differs{};
  for (uint32_t i = 0; i < plan.tensor_count; ++i) {
    differs |= load_pair(kept) ^ load_pair(&values[plan.tensor_at()[i]].tensor->c().device);
    kept += 2 + 2 * plan.rank_words;
  }
  return is_zero(differs);
}

bool same_shape_facts(const CachedPlan& plan, const ArgValue* values) {
  const RawFacts facts(plan, values);
  const int64_t* kept = plan.guard_values;
  for (const Fact& fact : plan.plan->candidate->guard.shape) {
    if (facts.shape(fact) != *kept++) return false;
  }
  return true;
}

}  // namespace

namespace {

/// Holds CachedPlan::none(). Never destroyed, because threads may end after static destruction.
/// The plan is a ring of one, like any line with a single plan.
union NoPlan {
  constexpr NoPlan() : plan() { plan.next_of_line = &plan; }
  ~NoPlan() {}  // NOLINT(modernize-use-equals-default): the plan stays
  CachedPlan plan;
};
constinit NoPlan no_plan;

}  // namespace

CachedPlan& CachedPlan::none() { return no_plan.plan; }

bool CachedPlan::same_tensors(const ArgValue* values) const {
  if (rank_words == 2) return same_words<2>(*this, values);
  if (rank_words == 4) return same_words<4>(*this, values);
  return same_words<8>(*this, values);
}

bool CachedPlan::same_scalars(const ArgValue* values) const {
  for (uint32_t i = 0; i < arg_count; ++i) {
    if (slot->schema->args[i].is_tensor()) continue;
    // With exact_scalars the frame holds the scalars the plan was built for. Every member of the
    // union sets all bytes, so memcmp is exact.
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    if (std::memcmp(&args[i].value, &values[i], sizeof(ArgValue)) != 0) return false;
  }
  return true;
}

bool CachedPlan::same_values(const ArgValue* values) const {
  if (exact_scalars && !same_scalars(values)) return false;
  const RawFacts facts(*this, values);
  const GuardFacts& guard = plan->candidate->guard;
  const int64_t* kept = guard_values + guard.shape.size();
  for (const Fact& fact : guard.value) {
    if (facts.value(fact) != *kept++) return false;
  }
  return aliases_of(*slot->schema, arg_count, values) == aliases;
}

uint64_t CachedPlan::shape_hash_of(const ArgValue* values) const {
  Declines::ShapeHash hash;
  for (uint32_t i = 0; i < tensor_count; ++i) {
    const TensorView& tensor = *values[tensor_at()[i]].tensor;
    if (tensor.present()) hash.add(tensor_at()[i], tensor);
  }
  return hash.value();
}

CachedPlan::Fit CachedPlan::fit(const ArgValue* values) const {
  if (exact_only || may_be_declined(values) || !same_kinds(*this, values)) return Fit::no;
  if (!checks->hold(values) || !where_holds(*this, values)) return Fit::no;
  const bool same = same_shape_facts(*this, values) && (!value_guarded || same_values(values));
  return same ? Fit::same_class : Fit::other_class;
}

void CachedPlan::forget_layouts() { met_key = next_epoch(); }

bool CachedPlan::take_plan_of(const ClassKey& key) {
  const Decision* known = space->known(key);
  if (known == nullptr || known->plans.empty()) return false;
  const RankedCandidate& first = known->plans.front();
  if (first.candidate != plan->candidate) return false;
  classes->of_class = key;  // first, because it may allocate
  plan = &first;
  plan_id = first.id;
  return true;
}

bool CachedPlan::move_to_class(const ArgValue* values) {
  bool moved = false;
  base::if_memory([&] { moved = try_to_move(values); });
  return moved;
}

bool CachedPlan::try_to_move(const ArgValue* values) {
  if (space == nullptr || plan->candidate->prepared != nullptr) return false;
  const RawFacts facts(*this, values);
  ClassKey key = classes->kinds;
  if (!space->layout().finish(facts, key)) return false;
  // If a guarded scalar changed, leave the call to the slow path, which checks ranges of scalars.
  if (value_guarded && !same_values(values)) return false;
  if (!key.equals(classes->of_class) && !take_plan_of(key)) return false;
  keep_guard_values(values);
  return true;
}

bool CachedPlan::load_pack(const ArgValue* values) {
  const auto& constant = PackedConstant::of(*values[pack_index()].tensor);
  const Pack* pack = constant.find(*plan->candidate->implementation, call);
  if (pack == nullptr) [[unlikely]] {
    // Without memory the slow path tries it again, and reports the failure.
    base::if_memory([&] {
      const auto made = constant.pack_for(*plan, call, pack_index());
      if (made) pack = made->get();
    });
    if (pack == nullptr) return false;
  }
  call.instance = pack->instance();
  extras->pack_serial = pack->serial();
  return (call.instance != nullptr) == with_pack;
}

void CachedPlan::remember(const ArgValue* values) {
  for (uint64_t* known : {layouts, exact_layouts}) std::fill_n(known, kMaxLayouts, kNoLayout);
  uint64_t* kept = exact;
  for (uint32_t i = 0; i < tensor_count; ++i) {
    const TensorView& tensor = *values[tensor_at()[i]].tensor;
    std::memcpy(kept, &tensor.c().device, 16);
    for (uint32_t word = 0; word < rank_words; word += 2) {
      std::memcpy(kept + 2 + word, tensor.shape_words() + word, 16);
      std::memcpy(kept + 2 + rank_words + word, tensor.stride_words() + word, 16);
    }
    kept += 2 + 2 * rank_words;
  }
  varies_freely = shapes->free.usable && shapes->free.can_start_from(values, *checks);
}

void CachedPlan::move_within(const DecisionCache* of_operator, const ArgValue* values) {
  space = nullptr;
  classes = nullptr;
  // Without guarded facts all calls that the plan accepts are of one class.
  if (of_operator == nullptr || plan->candidate->guard.count() == 0) return;
  auto made = std::make_unique<PlanClasses>();
  if (!of_operator->layout().start(RawFacts(*this, values), made->kinds)) return;
  classes = std::move(made);
  space = of_operator;
}

void CachedPlan::keep_guard_values(const ArgValue* values) {
  if (shapes->program.usable) return shapes->program.keep(values, guard_values);
  const RawFacts facts(*this, values);
  int64_t* kept = guard_values;
  for (const Fact& fact : plan->candidate->guard.shape) *kept++ = facts.shape(fact);
  for (const Fact& fact : plan->candidate->guard.value) *kept++ = facts.value(fact);
  aliases = aliases_of(*slot->schema, arg_count, values);
}

void CachedPlan::get_arguments(ArgValue* values) const {
  for (uint32_t i = 0; i < arg_count; ++i)
    std::memcpy(&values[i], &args[i].value, sizeof(ArgValue));
  if (site.has_instance())
    std::memcpy(&values[arg_count], &args[call.arg_count].value, sizeof(ArgValue));
}

CallSite CachedPlan::frame_site() const {
  CallSite kinds_in_frame = site;
  for (uint32_t i = 0; i < arg_count; ++i) {
    if ((float_from_int >> i & 1) != 0) kinds_in_frame.set_tag(i, ArgTag::floating);
  }
  return kinds_in_frame;
}

void CachedPlan::count_for(std::shared_ptr<ImplementationCounters> next, ThreadBlock& owner) {
  if (next == count->counters) return;
  const std::lock_guard lock(owner.counting);
  if (count->counters != nullptr) owner.keep_count(count->counters, count->all());
  count->calls.store(0, std::memory_order_relaxed);
  count->nested.store(0, std::memory_order_relaxed);
  count->counters = std::move(next);
}

}  // namespace opmux::dispatch
