#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

using opmux::Code;
using opmux::Status;
using opmux::runtime::CArguments;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::slot_of;
using opmux::runtime::str_of;
using opmux::runtime::write_failure;

namespace {

Status set_frame(opmux_plan& plan, const CArguments& arguments) {
  return opmux::detail::set_frame(plan.cpp.bound(), arguments.site(), arguments.values());
}

}  // namespace

int32_t opmux_plan_bind(opmux_operator* op, const opmux_arg* args, uint32_t count, uint32_t flags,
                        opmux_plan** plan, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op, plan", op, plan); !bad.ok()) return bad;
    auto arguments = std::make_unique<CArguments>();
    Status status(arguments->read(*slot_of(op).schema, args, count));
    if (!status.ok()) return status;
    auto bound = opmux::detail::bind(slot_of(op), arguments->site(), arguments->values(),
                                     (flags & OPMUX_PLAN_FOR_CAPTURE) != 0);
    if (!bound) return bound.error();
    *plan = new opmux_plan{*std::move(bound), &slot_of(op), std::move(arguments)};
    return {};
  });
}

void opmux_plan_destroy(opmux_plan* plan) { delete plan; }

int32_t opmux_plan_call(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                        opmux_error* error) {
  if (plan == nullptr)
    return write_failure(error, Code::invalid_argument, "c.null", "plan is null");
  CArguments arguments;
  Status::Detail* failure = arguments.read(*plan->slot->schema, args, count);
  if (failure == nullptr) {
    failure = opmux::detail::call_plan(plan->cpp.bound(), arguments.site(), arguments.values());
  }
  return opmux::runtime::report(failure, error);
}

int32_t opmux_plan_prepare(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan", plan); !bad.ok()) return bad;
    auto arguments = std::make_unique<CArguments>();
    Status status(arguments->read(*plan->slot->schema, args, count));
    if (status.ok()) status = set_frame(*plan, *arguments);
    if (status.ok()) plan->arguments = std::move(arguments);
    return status;
  });
}

int32_t opmux_plan_run_unchecked(opmux_plan* plan, opmux_error* error) {
  if (plan == nullptr)
    return write_failure(error, Code::invalid_argument, "c.null", "plan is null");
  return opmux::runtime::report(plan->cpp.run_unchecked().release(), error);
}

int32_t opmux_plan_state(const opmux_plan* plan, uint32_t* state, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan, state", plan, state); !bad.ok()) return bad;
    *state = static_cast<uint32_t>(plan->cpp.state());
    return {};
  });
}

int32_t opmux_plan_refresh(opmux_plan* plan, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan", plan); !bad.ok()) return bad;
    if (Status bad = plan->cpp.refresh(); !bad.ok()) return bad;
    return set_frame(*plan, *plan->arguments);
  });
}

int32_t opmux_plan_implementation(const opmux_plan* plan, opmux_str* id, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan, id", plan, id); !bad.ok()) return bad;
    *id = str_of(plan->cpp.implementation());
    return {};
  });
}
