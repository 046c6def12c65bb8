#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <opmux/arguments.hpp>
#include <opmux/explanation.hpp>
#include <opmux/hot_plan.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>

namespace opmux {

namespace dispatch {
struct OperatorSlot;
class BoundPlan;

OPMUX_API Status::Detail* call(OperatorSlot& slot, const CallSite& site,
                               const ArgValue* values) noexcept;
/// The same for at most four arguments, tensors first, each in a register; the library has these.
template <int kTensors, int kScalars>
OPMUX_API Status::Detail* call_words(OperatorSlot& slot, uint64_t site, uint64_t a, uint64_t b,
                                     uint64_t c, uint64_t d) noexcept;
/// The same with a constant among the arguments.
OPMUX_API Status::Detail* call_with_constants(OperatorSlot& slot, const CallSite& site,
                                              const ArgValue* values) noexcept;
}  // namespace dispatch

struct CallOptions;
class Plan;

namespace detail {
/// The entry of the library that suits a site best, chosen when compiling.
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
/// What follows an outcome that is not ok, the mark still set.
OPMUX_API Status::Detail* end_plan(dispatch::BoundPlan& plan, int32_t outcome) noexcept;
OPMUX_API Status set_frame(dispatch::BoundPlan& plan, const CallSite& site, const ArgValue* values);
}  // namespace detail

/// One decision, kept: called without a lookup. Belongs to one thread at a time; bind one per
/// thread. The runtime must outlive it.
class Plan {
 public:
  /// current: what would be decided now. stale: another choice would be made now; it still runs.
  /// revoked: denied, quarantined, withdrawn or its device lost; it does not run.
  enum class State : uint32_t { current, stale, revoked };

  OPMUX_API explicit Plan(std::unique_ptr<dispatch::BoundPlan> plan);
  OPMUX_API Plan(Plan&&) noexcept;
  OPMUX_API Plan& operator=(Plan&&) noexcept;
  OPMUX_API ~Plan();

  /// Runs if the arguments fit: `outside_plan` if the decision was made for others,
  /// `invalid_argument` if the schema refuses them, `revoked` if it may not run any more.
  template <class... Args>
  Status operator()(const Args&... args) {
    using Packed = detail::Packed<Args...>;
    const Packed packed(args...);
    if constexpr (Packed::kInRegisters) {
      return Status(detail::call_plan_words<Packed::kTensors, Packed::kScalars>(
          *plan_, packed.site.word(), packed.word(0), packed.word(1), packed.word(2),
          packed.word(3)));
    } else {
      return Status(detail::call_plan(*plan_, packed.site, packed.values));
    }
  }

  /// Checks arguments as a call does and keeps them for run_unchecked.
  template <class... Args>
  Status prepare(const Args&... args) {
    const detail::Packed<Args...> packed(args...);
    return detail::set_frame(*plan_, packed.site, packed.values);
  }
  /// Runs on what prepare() kept. The caller promises that those views still exist and were not
  /// changed but for their data pointers; of a constant, that it did not change. A revoked plan
  /// still refuses.
  Status run_unchecked() {
    detail::HotPlan& hot = *hot_;
    // Another thread than last time, a call inside a call: found by the library.
    std::atomic<uint64_t>* const mark = hot.mark;
    if (hot.block != dispatch::thread_block || mark->load(std::memory_order_relaxed) != 0)
        [[unlikely]] {
      return Status(detail::run_slowly(*plan_));
    }
    mark->store(hot.plan_id, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (hot.state.load(std::memory_order_acquire) >= detail::HotPlan::kRevoked) [[unlikely]] {
      return Status(detail::end_plan(*plan_, -1));
    }
    const int32_t outcome = hot.run(hot.user_data, hot.call);
    if (outcome != OPMUX_OK) [[unlikely]]
      return Status(detail::end_plan(*plan_, outcome < 0 ? OPMUX_FAILED : outcome));
    mark->store(0, std::memory_order_release);
    hot.calls.store(hot.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return {};
  }

  OPMUX_API State state() const noexcept;
  /// Decides anew for the arguments it was bound with; if that fails, the plan stays as it was.
  OPMUX_API Status refresh();
  /// The implementation that it runs.
  OPMUX_API const std::string& implementation() const noexcept;
  OPMUX_API uint64_t generation() const noexcept;

  dispatch::BoundPlan& bound() const noexcept { return *plan_; }

 private:
  std::unique_ptr<dispatch::BoundPlan> plan_;
  detail::HotPlan* hot_;
};

}  // namespace opmux
