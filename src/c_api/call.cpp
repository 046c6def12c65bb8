#include <algorithm>
#include <cstring>
#include <vector>

#include "c_api/error.hpp"
#include "c_api/handles.hpp"
#include "c_api/policy.hpp"
#include "dispatch/call/call.hpp"
#include "runtime/calls/operator_instance.hpp"

using opmux::Code;
using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::slot_of;
using opmux::c_api::view_of;
using opmux::c_api::write_failure;
using opmux::dispatch::OperatorSlot;
using opmux::runtime::CArguments;

namespace {

template <size_t size>
void write_text(std::string_view text, char (&to)[size]) {
  const size_t length = text.copy(to, size - 1);
  to[length] = '\0';
}

/// Writes as many bytes as the caller's struct has.
void write_report(const opmux::CallReport& from, opmux_report* to) {
  opmux_report full{};
  full.struct_size = to->struct_size;
  full.outcome = static_cast<int32_t>(from.outcome);
  write_text(from.implementation, full.implementation);
  write_text(from.reason, full.reason);
  full.fell_back = from.fell_back ? 1 : 0;
  full.cached = from.cached ? 1 : 0;
  full.generation = from.generation;
  full.select_ns = from.select_ns;
  full.run_ns = from.run_ns;
  write_text(from.transforms, full.transforms);
  full.transform_ns = from.transform_ns;
  std::memcpy(to, &full, std::min<size_t>(to->struct_size, sizeof(full)));
}

Status read_call_options(const opmux_call_options* from, opmux::CallOptions& to) {
  if (from == nullptr) return {};
  opmux_call_options read{};
  if (Status bad = opmux::c_api::read_sized(*from, sizeof(read), "options", read); !bad.ok())
    return bad;
  to = {{read.tag}, read.stream, read.max_threads};
  return {};
}

}  // namespace

int32_t opmux_operator_get(opmux_runtime* runtime, opmux_str name, opmux_operator** op,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, op", runtime, op); !bad.ok()) return bad;
    const auto found = runtime->cpp.op(view_of(name));
    if (!found) return found.error();
    *op = reinterpret_cast<opmux_operator*>(&found->slot());
    return {};
  });
}

int32_t opmux_call_operator(opmux_operator* op, const opmux_arg* args, uint32_t count,
                            opmux_error* error) {
  if (op == nullptr) return write_failure(error, Code::invalid_argument, "c.null", "op is null");
  OperatorSlot& slot = slot_of(op);
  opmux::runtime::CArguments arguments;
  Status::Detail* failure = arguments.read(*slot.schema, args, count);
  if (failure == nullptr) {
    failure = opmux::dispatch::call(slot, arguments.site(), arguments.values());
  }
  return opmux::c_api::report(failure, error);
}

int32_t opmux_call_operator_with(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                 const opmux_call_options* options, opmux_report* report,
                                 opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op", op); !bad.ok()) return bad;
    opmux::CallOptions read;
    if (Status bad = read_call_options(options, read); !bad.ok()) return bad;
    opmux::runtime::CArguments arguments;
    opmux::CallReport told;
    Status status(arguments.read(*slot_of(op).schema, args, count));
    if (status.ok()) {
      status = Status(opmux::detail::call_with(slot_of(op), arguments.site(), arguments.values(),
                                               read, report == nullptr ? nullptr : &told));
    }
    told.outcome = status.code();
    if (report != nullptr) write_report(told, report);
    return status;
  });
}

using opmux::Code;
using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::only_flags;
using opmux::c_api::slot_of;
using opmux::c_api::str_of;
using opmux::c_api::write_failure;
using opmux::runtime::CArguments;

namespace {

Status set_frame(opmux_plan& plan, const opmux::runtime::CArguments& arguments) {
  return opmux::detail::set_frame(plan.cpp.bound(), arguments.site(), arguments.values());
}

}  // namespace

int32_t opmux_plan_bind(opmux_operator* op, const opmux_arg* args, uint32_t count, uint32_t flags,
                        opmux_plan** plan, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op, plan", op, plan); !bad.ok()) return bad;
    if (Status bad = only_flags(flags, OPMUX_PLAN_FOR_CAPTURE, "flags", "OPMUX_PLAN_FOR_*");
        !bad.ok()) {
      return bad;
    }
    auto arguments = std::make_unique<opmux::runtime::CArguments>();
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
  opmux::runtime::CArguments arguments;
  Status::Detail* failure = arguments.read(*plan->slot->schema, args, count);
  if (failure == nullptr) {
    failure = opmux::detail::call_plan(plan->cpp.bound(), arguments.site(), arguments.values());
  }
  return opmux::c_api::report(failure, error);
}

int32_t opmux_plan_prepare(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan", plan); !bad.ok()) return bad;
    auto arguments = std::make_unique<opmux::runtime::CArguments>();
    Status status(arguments->read(*plan->slot->schema, args, count));
    if (status.ok()) status = set_frame(*plan, *arguments);
    if (status.ok()) plan->arguments = std::move(arguments);
    return status;
  });
}

int32_t opmux_plan_run_unchecked(opmux_plan* plan, opmux_error* error) {
  if (plan == nullptr)
    return write_failure(error, Code::invalid_argument, "c.null", "plan is null");
  return opmux::c_api::report(plan->cpp.run_unchecked().release(), error);
}

int32_t opmux_plan_set_stream(opmux_plan* plan, void* stream, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("plan", plan); !bad.ok()) return bad;
    plan->cpp.set_stream(stream);
    return {};
  });
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

using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;

int32_t opmux_constant_create(opmux_runtime* runtime, const opmux_tensor* tensor,
                              opmux_constant** constant, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, tensor, constant", runtime, tensor, constant); !bad.ok()) {
      return bad;
    }
    auto made = runtime->cpp.constant(opmux::TensorView(*tensor));
    if (!made) return made.error();
    *constant = new opmux_constant{*std::move(made)};
    return {};
  });
}

void opmux_constant_destroy(opmux_constant* constant) { delete constant; }

int32_t opmux_constant_changed(opmux_constant* constant, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("constant", constant); !bad.ok()) return bad;
    constant->cpp.changed();
    return {};
  });
}

int32_t opmux_constant_packed_bytes(const opmux_constant* constant, uint64_t* bytes,
                                    opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("constant, bytes", constant, bytes); !bad.ok()) return bad;
    *bytes = constant->cpp.packed_bytes();
    return {};
  });
}

opmux_arg opmux_arg_constant(const opmux_constant* constant) {
  return constant == nullptr ? opmux_arg_none() : constant->cpp.argument();
}

using opmux::Code;
using opmux::Status;
using opmux::c_api::Destination;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::slot_of;
using opmux::c_api::view_of;
using opmux::c_api::write_failure;

int32_t opmux_instance_create(opmux_operator* op, const opmux_named_arg* fixed, uint32_t count,
                              opmux_instance** instance, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op, instance", op, instance); !bad.ok()) return bad;
    if (count != 0) {
      if (Status bad = none_null("fixed", fixed); !bad.ok()) return bad;
    }
    std::vector<opmux::NamedArgument> named;
    for (uint32_t i = 0; i < count; ++i) named.emplace_back(view_of(fixed[i].name), fixed[i].value);
    auto made = opmux::detail::make_instance(slot_of(op), named);
    if (!made) return made.error();
    *instance = new opmux_instance{*std::move(made)};
    return {};
  });
}

void opmux_instance_destroy(opmux_instance* instance) { delete instance; }

int32_t opmux_instance_call(opmux_instance* instance, const opmux_arg* args, uint32_t count,
                            opmux_error* error) {
  if (instance == nullptr)
    return write_failure(error, Code::invalid_argument, "c.null", "instance is null");
  const opmux::runtime::OperatorInstance& owner = instance->cpp.owner();
  opmux::runtime::CArguments arguments;
  Status::Detail* failure = arguments.read(owner.schema(), args, count);
  if (failure == nullptr)
    failure = opmux::detail::call_instance(owner, arguments.site(), arguments.values());
  return opmux::c_api::report(failure, error);
}

int32_t opmux_instance_call_with(opmux_instance* instance, const opmux_arg* args, uint32_t count,
                                 const opmux_call_options* options, opmux_report* report,
                                 opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("instance", instance); !bad.ok()) return bad;
    if (count != 0) {
      if (Status bad = none_null("args", args); !bad.ok()) return bad;
    }
    opmux::CallOptions read;
    if (Status bad = read_call_options(options, read); !bad.ok()) return bad;
    opmux::CallReport told;
    const Status status =
        instance->cpp.call_arguments({args, count}, read, report == nullptr ? nullptr : &told);
    if (report != nullptr) write_report(told, report);
    return status;
  });
}

int32_t opmux_instance_reset(opmux_instance* instance, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("instance", instance); !bad.ok()) return bad;
    instance->cpp.reset();
    return {};
  });
}

int32_t opmux_instance_describe(const opmux_instance* instance, char* buffer, size_t capacity,
                                size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("instance", instance); !bad.ok()) return bad;
    return Destination{buffer, capacity, size}.write(to_json(instance->cpp.states()));
  });
}
