#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <opmux/arguments.hpp>
#include <opmux/explanation.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>

namespace opmux {

namespace dispatch {
struct OperatorSlot;
class BoundPlan;
}  // namespace dispatch

struct CallOptions;
class Plan;

namespace detail {
OPMUX_API Status::Detail* call(dispatch::OperatorSlot& slot, const CallSite& site,
                               const ArgValue* values) noexcept;
OPMUX_API Status::Detail* call_with(dispatch::OperatorSlot& slot, const CallSite& site,
                                    const ArgValue* values, const CallOptions& options,
                                    CallReport* report) noexcept;
OPMUX_API Result<Plan> bind(dispatch::OperatorSlot& slot, const CallSite& site,
                            const ArgValue* values, bool for_capture);
OPMUX_API Explanation explain(dispatch::OperatorSlot& slot, const CallSite& site,
                              const ArgValue* values);
OPMUX_API Status::Detail* call_plan(dispatch::BoundPlan& plan, const CallSite& site,
                                    const ArgValue* values) noexcept;
OPMUX_API Status::Detail* run_unchecked(dispatch::BoundPlan& plan) noexcept;
OPMUX_API Status set_frame(dispatch::BoundPlan& plan, const CallSite& site, const ArgValue* values);
}  // namespace detail

/// One decision, kept: called without a lookup. Belongs to one thread at a time; bind one per thread.
/// The runtime must outlive it.
class Plan {
 public:
  /// current: what would be decided now. stale: another choice would be made now; it still runs.
  /// revoked: denied, quarantined, withdrawn or its device lost; it does not run.
  enum class State : uint32_t { current, stale, revoked };

  OPMUX_API explicit Plan(std::unique_ptr<dispatch::BoundPlan> plan);
  OPMUX_API Plan(Plan&&) noexcept;
  OPMUX_API Plan& operator=(Plan&&) noexcept;
  OPMUX_API ~Plan();

  /// Runs if the arguments fit: `outside_plan` if the decision was made for others, `invalid_argument`
  /// if the schema refuses them, `revoked` if it may not run any more.
  template <class... Args>
  Status operator()(const Args&... args) {
    const detail::Packed<Args...> packed(args...);
    return Status(detail::call_plan(*plan_, packed.site, packed.values));
  }

  /// Checks arguments as a call does and keeps them for run_unchecked.
  template <class... Args>
  Status prepare(const Args&... args) {
    const detail::Packed<Args...> packed(args...);
    return detail::set_frame(*plan_, packed.site, packed.values);
  }
  /// Runs on what prepare() kept. The caller promises that those views still exist and were not changed
  /// but for their data pointers; a revoked plan still refuses.
  Status run_unchecked() { return Status(detail::run_unchecked(*plan_)); }

  OPMUX_API State state() const noexcept;
  /// Decides anew for the arguments it was bound with; if that fails, the plan stays as it was.
  OPMUX_API Status refresh();
  /// The implementation that it runs.
  OPMUX_API const std::string& implementation() const noexcept;
  OPMUX_API uint64_t generation() const noexcept;

  dispatch::BoundPlan& bound() const noexcept { return *plan_; }

 private:
  std::unique_ptr<dispatch::BoundPlan> plan_;
};

}  // namespace opmux
