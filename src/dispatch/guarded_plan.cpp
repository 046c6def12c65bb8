#include "dispatch/guarded_plan.hpp"

#include <array>
#include <bit>

#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {
namespace {

using registry::Fact;
using registry::FactKind;

int64_t dim_value(const registry::DimChecks& checks, uint8_t dim, const ArgValue* values) {
  const uint8_t arg = checks.source_arg[dim];
  return arg == 255 ? -1 : values[arg].tensor->dim(checks.source_dim[dim]);
}

int64_t rows_of(const GuardedPlan& plan, const ArgValue* values) {
  for (size_t i = 0; i < plan.schema->args.size(); ++i) {
    const registry::ArgSpec& spec = plan.schema->args[i];
    if (!spec.leading || i >= plan.arg_count || !values[i].tensor->present()) continue;
    int64_t rows = 1;
    const int leading = values[i].tensor->rank() - static_cast<int>(spec.dims.size());
    for (int d = 0; d < leading; ++d) rows *= values[i].tensor->dim(d);
    return rows;
  }
  return registry::kAbsent;
}

int64_t shape_fact(const GuardedPlan& plan, Fact fact, const ArgValue* values) {
  if (fact.kind == FactKind::dim) {
    if (fact.index == registry::kRowsDim) return rows_of(plan, values);
    const int64_t value = dim_value(*plan.checks, fact.index, values);
    return value < 0 ? registry::kAbsent : value;
  }
  return fact.index < plan.arg_count ? tensor_fact(*values[fact.index].tensor, fact.kind)
                                     : registry::kAbsent;
}

int64_t value_fact(const GuardedPlan& plan, Fact fact, const ArgValue* values) {
  if (fact.index >= plan.arg_count) return registry::kAbsent;  // a default: the site fixes it
  if (fact.kind == FactKind::alignment) {
    return tensor_fact(*values[fact.index].tensor, fact.kind);
  }
  return std::bit_cast<int64_t>(values[fact.index]);
}

uint32_t aliases_of(const registry::Schema& schema, size_t count, const ArgValue* values) {
  uint32_t mask = 0;
  for (size_t i = 0; i < count; ++i) {
    const int other = schema.args[i].alias_of;
    if (other < 0 || static_cast<size_t>(other) >= count) continue;
    if (values[i].tensor->data() == values[other].tensor->data()) mask |= 1u << i;
  }
  return mask;
}

bool equalities_hold(const registry::DimChecks& checks, const ArgValue* values) {
  bool equal = true;
  for (const registry::DimEquality& e : checks.equalities) {
    equal &= values[e.arg_a].tensor->dim(e.dim_a) == values[e.arg_b].tensor->dim(e.dim_b);
  }
  for (const registry::DimConstant& c : checks.constants) {
    equal &= values[c.arg].tensor->dim(c.dim) == c.value;
  }
  return equal;
}

bool where_holds(const GuardedPlan& plan, const ArgValue* values) {
  const registry::Schema& schema = *plan.schema;
  if (schema.where.empty()) return true;
  std::array<int64_t, registry::kMaxDims> dims;
  for (size_t d = 0; d < schema.dims.size(); ++d) {
    dims[d] = dim_value(*plan.checks, static_cast<uint8_t>(d), values);
  }
  std::array<int64_t, OPMUX_MAX_ARGS> scalars{};
  for (size_t i = 0; i < schema.args.size(); ++i) {
    scalars[i] = i < plan.arg_count ? values[i].i64 : plan.args[i].value.i64;
  }
  for (const registry::WhereExpression& condition : schema.where) {
    if (!condition.holds({dims.data(), schema.dims.size()}, {scalars.data(), schema.args.size()})) {
      return false;
    }
  }
  return true;
}

bool same_kinds(const GuardedPlan& plan, const ArgValue* values) {
  const uint64_t* kept = plan.exact;
  WordPair differs{};
  for (uint32_t i = 0; i < plan.tensor_count; ++i) {
    differs |= load_pair(kept) ^ load_pair(&values[plan.tensor_at[i]].tensor->c().device);
    kept += 2 + 2 * plan.rank_words;
  }
  return (differs[0] | differs[1]) == 0;
}

/// Sizes that overflow, negative dimensions and empty outputs are for the full check to see.
bool plausible(const GuardedPlan& plan, const ArgValue* values) {
  bool good = true;
  for (uint32_t i = 0; i < plan.tensor_count; ++i) {
    const TensorView& tensor = *values[plan.tensor_at[i]].tensor;
    int64_t bytes = tensor.dtype().size_bytes();
    int64_t signs = 0;
    bool empty = false;
    for (int d = 0; d < tensor.rank(); ++d) {
      const int64_t size = tensor.dim(d);
      signs |= size;
      empty |= size == 0;
      good &= !__builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes);
    }
    good &= signs >= 0;
    good &= !empty || !plan.schema->args[plan.tensor_at[i]].written();
  }
  return good;
}

}  // namespace

GuardedPlan& GuardedPlan::none() {
  // A ring of one, as every line is: a walk ends where it began.
  static GuardedPlan plan;
  static const bool closed = (plan.next_of_line = &plan) != nullptr;
  static_cast<void>(closed);
  return plan;
}

bool GuardedPlan::same_scalars(const ArgValue* values) const {
  for (uint32_t i = 0; i < arg_count; ++i) {
    if (schema->args[i].is_tensor()) continue;
    // The frame never held others.
    if (std::memcmp(&args[i].value, &values[i], sizeof(ArgValue)) != 0) return false;
  }
  return true;
}

bool GuardedPlan::same_values(const ArgValue* values) const {
  if (exact_scalars && !same_scalars(values)) return false;
  const GuardFacts& guard = *plan->guard;
  const int64_t* kept = guard_values + guard.shape.size();
  for (const Fact& fact : guard.value) {
    if (value_fact(*this, fact, values) != *kept++) return false;
  }
  return aliases_of(*schema, arg_count, values) == aliases;
}

bool GuardedPlan::fits(const ArgValue* values) const {
  // Once anything was declined, who runs depends on the exact arguments.
  if (declines != nullptr && declines->load(std::memory_order_relaxed) != 0) return false;
  if (exact_only || !same_kinds(*this, values) || !plausible(*this, values)) return false;
  const int64_t* kept = guard_values;
  for (const Fact& fact : plan->guard->shape) {
    if (shape_fact(*this, fact, values) != *kept++) return false;
  }
  return equalities_hold(*checks, values) && where_holds(*this, values) &&
         (!value_guarded || same_values(values));
}

void GuardedPlan::remember(const ArgValue* values) {
  uint64_t* kept = exact;
  for (uint32_t i = 0; i < tensor_count; ++i) {
    const TensorView& tensor = *values[tensor_at[i]].tensor;
    std::memcpy(kept, &tensor.c().device, 16);
    std::memcpy(kept + 2, tensor.shape_words(), rank_words * sizeof(int64_t));
    std::memcpy(kept + 2 + rank_words, tensor.stride_words(), rank_words * sizeof(int64_t));
    kept += 2 + 2 * rank_words;
  }
}

void GuardedPlan::keep_guard_values(const ArgValue* values) {
  int64_t* kept = guard_values;
  for (const Fact& fact : plan->guard->shape) *kept++ = shape_fact(*this, fact, values);
  for (const Fact& fact : plan->guard->value) *kept++ = value_fact(*this, fact, values);
  aliases = aliases_of(*schema, arg_count, values);
}

void GuardedPlan::count_for(std::shared_ptr<ImplementationCounters> next) {
  const uint64_t counted = calls.exchange(0, std::memory_order_relaxed);
  if (counters != nullptr) counters->calls.fetch_add(counted, std::memory_order_relaxed);
  counted_for.store(next.get(), std::memory_order_release);
  counters = std::move(next);
}

}  // namespace opmux::dispatch
