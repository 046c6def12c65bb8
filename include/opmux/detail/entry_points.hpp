#pragma once

#include <cstdint>
#include <string>

#include <opmux/detail/arguments.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// Entry points of the library for the inline functions of Operator and Plan. Internal.
namespace dispatch {
struct OperatorSlot;
class BoundPlan;

/// Checks arguments, chooses and runs. Returns null for success, or a detail that the caller owns.
OPMUX_API Status::Detail* call(OperatorSlot& slot, const CallSite& site,
                               const ArgValue* values) noexcept;
/// The same for at most four arguments, tensors first, each in a register. The library contains one
/// instance for each combination.
template <int kTensors, int kScalars>
OPMUX_API Status::Detail* call_words(OperatorSlot& slot, uint64_t site, uint64_t a, uint64_t b,
                                     uint64_t c, uint64_t d) noexcept;
/// The same with a Constant among the arguments.
OPMUX_API Status::Detail* call_with_constants(OperatorSlot& slot, const CallSite& site,
                                              const ArgValue* values) noexcept;
}  // namespace dispatch

struct CallOptions;
class Plan;

namespace detail {
/// Calls the entry point that suits the kinds of the arguments best; the compiler selects it.
template <class... Args>
Status::Detail* call(dispatch::OperatorSlot& slot, const Packed<Args...>& packed) {
  if constexpr (Packed<Args...>::kHasConstant) {
    return dispatch::call_with_constants(slot, packed.site, packed.values);
  } else if constexpr (Packed<Args...>::kInRegisters) {
    return dispatch::call_words<Packed<Args...>::kTensors, Packed<Args...>::kScalars>(
        slot, packed.site.word(), packed.word(0), packed.word(1), packed.word(2), packed.word(3));
  } else {
    return dispatch::call(slot, packed.site, packed.values);
  }
}

OPMUX_API Status::Detail* call_with(dispatch::OperatorSlot& slot, const CallSite& site,
                                    const ArgValue* values, const CallOptions& options,
                                    CallReport* report) noexcept;
OPMUX_API Result<Plan> bind(dispatch::OperatorSlot& slot, const CallSite& site,
                            const ArgValue* values, bool for_capture);
OPMUX_API Result<std::string> decide(dispatch::OperatorSlot& slot, const CallSite& site,
                                     const ArgValue* values);
OPMUX_API Explanation explain(dispatch::OperatorSlot& slot, const CallSite& site,
                              const ArgValue* values);
OPMUX_API Status::Detail* call_plan(dispatch::BoundPlan& plan, const CallSite& site,
                                    const ArgValue* values) noexcept;
template <int kTensors, int kScalars>
OPMUX_API Status::Detail* call_plan_words(dispatch::BoundPlan& plan, uint64_t site, uint64_t a,
                                          uint64_t b, uint64_t c, uint64_t d) noexcept;
OPMUX_API Status::Detail* run_slowly(dispatch::BoundPlan& plan) noexcept;
/// Handles an outcome that is not ok while the thread is still marked as running the plan.
OPMUX_API Status::Detail* end_plan(dispatch::BoundPlan& plan, int32_t outcome) noexcept;
OPMUX_API Status set_frame(dispatch::BoundPlan& plan, const CallSite& site, const ArgValue* values);
}  // namespace detail

}  // namespace opmux
