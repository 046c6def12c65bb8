#pragma once

#include <cstdint>
#include <string>

#include <opmux/arguments.hpp>
#include <opmux/detail/hot_plan.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/explanation.hpp>
#include <opmux/report.hpp>
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

/// One decision, kept: binding chooses the implementation, and calls run it without a lookup. Use
/// it in loops that call one operator with arguments of the same kind.
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   std::vector<float> data(4 * 64), result(4 * 64);
///   opmux::TensorView x(data.data(), opmux::f32, {4, 64}), y(result.data(), opmux::f32, {4, 64});
///   opmux::Plan plan = softmax.bind(y, x).value();
///   for (int step = 0; step < 100; ++step) {
///     opmux::Status status = plan(y, x);
///     if (status.code() == opmux::Code::revoked && plan.refresh().ok()) status = plan(y, x);
///     if (status.code() == opmux::Code::outside_plan) status = softmax(y, x);
///     if (!status.ok()) break;
///   }
///
/// A plan does not fall back: it returns the outcome of its implementation. It does not convert
/// tensors, and arguments that are strings or lists cannot be bound.
///
/// Owned by the program and used by one thread at a time; bind one plan for each thread. The
/// runtime must outlive it. Do not use a moved-from plan.
class Plan {
 public:
  /// current: a new decision would choose the same implementation. stale: it would choose another
  /// one; the plan still runs. revoked: the implementation was denied, quarantined or withdrawn,
  /// its backend was switched off, or its device was lost; the plan does not run until refresh().
  enum class State : uint32_t { current, stale, revoked };

  /// For Operator::bind().
  OPMUX_API explicit Plan(detail::Owned<dispatch::BoundPlan> plan);
  OPMUX_API Plan(Plan&&) noexcept;
  OPMUX_API Plan& operator=(Plan&&) noexcept;
  /// Adds the calls of this plan to the statistics. No call may be running.
  OPMUX_API ~Plan();

  /// Runs the implementation if the arguments fit the decision; they may differ from the bound ones
  /// in everything that the decision does not depend on. Fails without running anything with
  ///
  /// - `outside_plan` if these arguments need another decision: bind again or call the operator;
  /// - `invalid_argument` if the schema refuses them;
  /// - `revoked` if the implementation may not run any more: refresh() or bind again.
  ///
  /// Otherwise returns the outcome of the implementation, such as `failed` or `resource`.
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

  /// Checks arguments as a call does and stores references to them for run_unchecked(). Fails as a
  /// call does, except that nothing runs; then prepare() must succeed before run_unchecked().
  template <class... Args>
  Status prepare(const Args&... args) {
    const detail::Packed<Args...> packed(args...);
    return detail::set_frame(*plan_, packed.site, packed.values);
  }
  /// Runs on the arguments of the last prepare() without checking them. The caller guarantees that
  /// those views still exist and that only their data pointers changed (TensorView::set_data), and
  /// that a Constant did not change. Fails with `revoked`, or with the outcome of the
  /// implementation.
  ///
  ///   opmux::Operator softmax = runtime.op("softmax").value();
  ///   float x[2][4] = {}, y[4];
  ///   opmux::TensorView in(x[0], opmux::f32, {1, 4}), out(y, opmux::f32, {1, 4});
  ///   opmux::Plan plan = softmax.bind(out, in).value();
  ///   opmux::Status status = plan.prepare(out, in);
  ///   for (int i = 0; i < 2 && status.ok(); ++i) {
  ///     in.set_data(x[i]);
  ///     status = plan.run_unchecked();
  ///   }
  Status run_unchecked() {
    detail::HotPlan& hot = *hot_;
    // The library handles a change of thread and a call inside a call.
    if (hot.block != dispatch::thread_block || hot.marked()) [[unlikely]]
      return Status(detail::run_slowly(*plan_));
    if (hot.enter() >= detail::HotPlan::kRevoked) [[unlikely]]
      return Status(detail::end_plan(*plan_, -1));
    const int32_t outcome = hot.run(hot.user_data, hot.call);
    if (outcome != OPMUX_OK) [[unlikely]]
      return Status(detail::end_plan(*plan_, outcome < 0 ? OPMUX_FAILED : outcome));
    hot.leave();
    return {};
  }

  /// The state at this moment; another thread may change it right after. May be called from any
  /// thread.
  OPMUX_API State state() const noexcept;
  /// Decides again for the arguments that the plan was bound with and runs that choice from now on.
  /// If it fails (`no_candidate`, for example), the plan stays as it was. Call prepare() again
  /// before run_unchecked().
  OPMUX_API Status refresh();
  /// Id of the implementation that the plan runs. The reference is valid until refresh() or
  /// destruction.
  OPMUX_API const std::string& implementation() const noexcept;
  /// Number of the snapshot in which the decision was made.
  OPMUX_API uint64_t generation() const noexcept;

  /// For bindings.
  dispatch::BoundPlan& bound() const noexcept { return *plan_; }

 private:
  detail::Owned<dispatch::BoundPlan> plan_;
  detail::HotPlan* hot_;
};

}  // namespace opmux
