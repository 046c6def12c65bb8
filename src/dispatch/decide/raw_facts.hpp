#pragma once

#include <bit>

#include "dispatch/compiled_operator.hpp"
#include "dispatch/plan/cached_plan.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

/// Reads facts directly from the values of a call, without normalising the arguments. The arguments
/// must have the kinds that the plan was built for.
class RawFacts {
 public:
  RawFacts(const CachedPlan& plan, const ArgValue* values) : plan_(plan), values_(values) {}

  /// A fact of dimensions or strides.
  int64_t shape(schema::Fact fact) const {
    if (fact.kind != schema::FactKind::dim) return of_tensor(fact);
    if (fact.index == schema::kRowsDim) return plan_.checks->rows(values_);
    const int64_t size = plan_.checks->dim(fact.index, values_);
    return size < 0 ? schema::kAbsent : size;
  }

  /// A scalar or an alignment. A float gives its bits, also for -0.0, because plan() may depend on
  /// the sign of zero.
  int64_t value(schema::Fact fact) const {
    if (fact.kind == schema::FactKind::alignment) return of_tensor(fact);
    const opmux_arg& given = plan_.args[fact.index];
    if (given.tag == OPMUX_ARG_NONE) return schema::kAbsent;
    // An argument that the call site omits has its default, which is in the frame.
    return fact.index >= plan_.arg_count ? given.value.i64
                                         : std::bit_cast<int64_t>(values_[fact.index]);
  }

  /// Any fact, for the class key. Most questions are about dimensions.
  [[gnu::always_inline]] int64_t operator()(schema::Fact fact) const {
    if (fact.kind == schema::FactKind::dim) [[likely]]
      return shape(fact);
    return other(fact);
  }

 private:
  [[gnu::noinline]] int64_t other(schema::Fact fact) const {
    using schema::FactKind;
    switch (fact.kind) {
      case FactKind::scalar: return scalar(fact);
      case FactKind::ambient:
        if (fact.index == schema::kInstanceFact) return plan_.site.has_instance() ? 1 : 0;
        if (schema::is_rank(fact)) return plan_.slot->ranks->value(fact.index - schema::kFirstRank);
        return static_cast<int64_t>(plan_.context >> fact.index & 1);
      case FactKind::tag: return plan_.call.tag;
      case FactKind::threads: return plan_.call.max_threads;
      case FactKind::present: return plan_.args[fact.index].tag != OPMUX_ARG_NONE ? 1 : 0;
      default: return of_tensor(fact);
    }
  }

  /// As schema::value_of().
  int64_t scalar(schema::Fact fact) const {
    const int64_t word = value(fact);
    const bool real = plan_.args[fact.index].tag == OPMUX_ARG_F64;
    return real ? schema::float_fact(std::bit_cast<double>(word)) : word;
  }

  int64_t of_tensor(schema::Fact fact) const {
    return fact.index < plan_.arg_count
               ? schema::tensor_fact(*values_[fact.index].tensor, fact.kind)
               : schema::kAbsent;
  }

  const CachedPlan& plan_;
  const ArgValue* values_;
};

}  // namespace opmux::dispatch
