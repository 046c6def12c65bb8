#include "dispatch/plan/timed_run.hpp"

#include <array>

#include "base/memory.hpp"
#include "dispatch/call/call_check.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/call_timer.hpp"

namespace opmux::dispatch {
namespace {

[[gnu::cold, gnu::noinline]] void report_slow_call(const CachedPlan& plan, uint64_t took_ns) {
  std::array<ArgValue, schema::kMaxValues> values;
  plan.get_arguments(values.data());
  CheckedArguments checked;
  const schema::Schema& schema = *plan.slot->schema;
  if (!check(schema, plan.frame_site(), values.data(), checked).ok()) return;
  const schema::Signature signature{&schema,
                                    &checked.arguments,
                                    &checked.dims,
                                    static_cast<uint32_t>(plan.context),
                                    static_cast<uint32_t>(plan.call.tag),
                                    plan.slot->ranks,
                                    plan.call.max_threads};
  Engine& engine = *plan.slot->engine;
  const registry::ImplementationRecord& implementation = *plan.plan->candidate->implementation;
  health::Pass pass;
  pass.took_ns = took_ns;
  if (engine.dependencies().health->on_outcome(implementation, signature, Code::ok, pass))
    engine.health_changed(implementation);
}

/// Runs a call and measures it. The mark of the plan is set.
[[gnu::noinline]] int32_t run_measured(PlanTimer& timer, const opmux_call* call) {
  const CachedPlan& plan = *timer.plan;
  const registry::ImplementationRecord& implementation = *plan.plan->candidate->implementation;
  CallTimer measured(*implementation.backend, *plan.slot->engine->dependencies().clock,
                     {call->device.type, call->device.id}, call->stream);
  const int32_t outcome = timer.kernel.run(timer.kernel.user_data, call);
  const uint64_t took_ns = outcome == OPMUX_OK ? measured.stop() : 0;
  timer.untimed = untimed_after(implementation, took_ns);
  if (plan.plan->candidate->too_slow(took_ns)) [[unlikely]]
    base::if_memory([&] { report_slow_call(plan, took_ns); });
  return outcome;
}

/// The run function of a timed plan. A call that is not timed needs no stack frame, because
/// run_measured() is a separate function.
int32_t run_timed(void* self, const opmux_call* call) {
  PlanTimer& timer = *static_cast<PlanTimer*>(self);
  if (timer.untimed == 0) [[unlikely]]
    return run_measured(timer, call);
  --timer.untimed;
  return timer.kernel.run(timer.kernel.user_data, call);
}

}  // namespace

void time_calls(CachedPlan& plan) {
  if (!may_be_timed(*plan.plan->candidate->implementation, plan.context)) return;
  PlanTimer& timer = plan.with_extras().timer;
  timer = {{plan.run, plan.user_data}, 0, &plan};
  plan.run = run_timed;
  plan.user_data = &timer;
}

}  // namespace opmux::dispatch
