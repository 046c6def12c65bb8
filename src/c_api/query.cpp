#include <algorithm>
#include <cerrno>
#include <cstring>

#include <opmux/opmux.h>
#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>
#include <opmux/state_page.hpp>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "c_api/error.hpp"
#include "c_api/handles.hpp"
#include "c_api/policy.hpp"

using opmux::Code;
using opmux::Status;
using opmux::c_api::ask;
using opmux::c_api::Destination;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::only_flags;
using opmux::c_api::slot_of;
using opmux::c_api::str_of;
using opmux::c_api::view_of;
using opmux::runtime::CArguments;

namespace {

Status write_explanation(const opmux::Explanation& explanation, uint32_t format,
                         const Destination& to) {
  if (format > OPMUX_FORMAT_JSON)
    return {Code::invalid_argument, "c.format", "format is not an OPMUX_FORMAT_*"};
  return to.write(format == OPMUX_FORMAT_JSON ? to_json(explanation) : explanation.to_string());
}

}  // namespace

int32_t opmux_explain(opmux_operator* op, const opmux_arg* args, uint32_t count, uint32_t format,
                      char* buffer, size_t capacity, size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op", op); !bad.ok()) return bad;
    opmux::runtime::CArguments arguments;
    Status status(arguments.read(*slot_of(op).schema, args, count));
    if (!status.ok()) return status;
    return write_explanation(
        opmux::detail::explain(slot_of(op), arguments.site(), arguments.values()), format,
        {buffer, capacity, size});
  });
}

int32_t opmux_instance_explain(const opmux_instance* instance, const opmux_arg* args,
                               uint32_t count, uint32_t format, char* buffer, size_t capacity,
                               size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("instance", instance); !bad.ok()) return bad;
    if (count != 0) {
      if (Status bad = none_null("args", args); !bad.ok()) return bad;
    }
    return write_explanation(instance->cpp.explain_arguments({args, count}), format,
                             {buffer, capacity, size});
  });
}

int32_t opmux_decide(opmux_operator* op, const opmux_arg* args, uint32_t count, char* buffer,
                     size_t capacity, size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op", op); !bad.ok()) return bad;
    opmux::runtime::CArguments arguments;
    Status status(arguments.read(*slot_of(op).schema, args, count));
    if (!status.ok()) return status;
    const auto chosen = opmux::detail::decide(slot_of(op), arguments.site(), arguments.values());
    if (!chosen) return chosen.error();
    return Destination{buffer, capacity, size}.write(*chosen);
  });
}

int32_t opmux_runtime_lock(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return Destination{buffer, capacity, size}.write(runtime->cpp.lockfile().current().to_string());
  });
}

int32_t opmux_list_operators(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                             opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error, [](auto& cpp) { return cpp.list(); });
}

int32_t opmux_list_plugins(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                           opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.plugins().list(); });
}

int32_t opmux_policy_state(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                           opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.policy().state(); });
}

int32_t opmux_policy_check(opmux_runtime* runtime, opmux_str text, opmux_str name, uint32_t flags,
                           char* buffer, size_t capacity, size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    if (Status bad = only_flags(flags, OPMUX_CHECK_STRICT_NAMES, "flags", "OPMUX_CHECK_*");
        !bad.ok()) {
      return bad;
    }
    const auto check = runtime->cpp.policy().check(
        view_of(text), view_of(name), {.strict_names = (flags & OPMUX_CHECK_STRICT_NAMES) != 0});
    if (!check) return check.error();
    return Destination{buffer, capacity, size}.write(to_json(*check));
  });
}

int32_t opmux_condition_check(opmux_str text, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    const auto condition = opmux::Condition::parse(view_of(text));
    return condition ? Status() : condition.error();
  });
}

int32_t opmux_list_tuning(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                          opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.tuning().bundles(); });
}

int32_t opmux_list_proposals(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                             opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.tuning().proposals(); });
}

int32_t opmux_check_tuning(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    runtime->cpp.tuning().check();
    return {};
  });
}

int32_t opmux_reload_tuning(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.tuning().reload();
  });
}

int32_t opmux_sample_all_calls(opmux_runtime* runtime, int32_t on, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.tuning().sample_all_calls(on != 0);
  });
}

int32_t opmux_list_settings(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                            opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error, [](auto& cpp) { return cpp.settings(); });
}

int32_t opmux_health(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                     opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.health().report(); });
}

static_assert(static_cast<uint32_t>(opmux::BreakerState::closed) == OPMUX_BREAKER_IS_CLOSED &&
              static_cast<uint32_t>(opmux::BreakerState::open) == OPMUX_BREAKER_IS_OPEN &&
              static_cast<uint32_t>(opmux::BreakerState::half_open) == OPMUX_BREAKER_IS_HALF_OPEN &&
              static_cast<uint32_t>(opmux::BreakerState::isolated) == OPMUX_BREAKER_IS_ISOLATED);

int32_t opmux_force_breaker(opmux_runtime* runtime, opmux_str implementation, uint32_t what,
                            opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, implementation", runtime, implementation.data); !bad.ok())
      return bad;
    if (what > OPMUX_BREAKER_ISOLATE)
      return {Code::invalid_argument, "c.breaker", "`what` is not an OPMUX_BREAKER_* value"};
    return runtime->cpp.health().force_breaker({implementation.data, implementation.size},
                                               static_cast<opmux::BreakerForce>(what));
  });
}

int32_t opmux_on_breaker(opmux_runtime* runtime,
                         void (*listener)(void* context, const opmux_breaker_event* event),
                         void* context, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, listener", runtime, listener); !bad.ok()) return bad;
    runtime->cpp.health().on_breaker([listener, context](const opmux::BreakerEvent& event) {
      const opmux_breaker_event plain{sizeof(opmux_breaker_event),
                                      event.openings,
                                      str_of(event.implementation),
                                      str_of(event.op),
                                      str_of(event.what),
                                      str_of(event.why),
                                      static_cast<uint32_t>(event.from),
                                      static_cast<uint32_t>(event.to),
                                      event.open_for_ms,
                                      event.change};
      listener(context, &plain);
    });
    return {};
  });
}

int32_t opmux_stats_visit(opmux_runtime* runtime,
                          void (*visit)(void* context, const opmux_stats* stats), void* context,
                          opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, visit", runtime, visit); !bad.ok()) return bad;
    for (const opmux::CallStats& s : runtime->cpp.stats()) {
      const opmux_stats plain{sizeof(opmux_stats),
                              0,
                              str_of(s.implementation),
                              s.calls,
                              s.declined,
                              s.failed,
                              s.resource,
                              s.invalid_argument,
                              s.device_lost,
                              s.stood_in,
                              s.packed_bytes,
                              s.decided_each_time};
      visit(context, &plain);
    }
    return {};
  });
}

using opmux::Status;
using opmux::c_api::Destination;
using opmux::c_api::guarded;
using opmux::c_api::view_of;

int32_t opmux_write_state_page(opmux_runtime* runtime, opmux_str path, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return opmux::write_state_page(runtime->cpp, std::string(view_of(path)));
  });
}

int32_t opmux_process_state(int64_t pid, opmux_str state_dir, char* buffer, size_t capacity,
                            size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    const auto state = opmux::process_state(pid, std::string(view_of(state_dir)));
    if (!state) return state.error();
    return Destination{buffer, capacity, size}.write(to_json(*state));
  });
}

int32_t opmux_process_states(opmux_str state_dir, char* buffer, size_t capacity, size_t* size,
                             opmux_error* error) {
  return guarded(error, [&]() -> Status {
    const auto states = opmux::process_states(std::string(view_of(state_dir)));
    return Destination{buffer, capacity, size}.write(to_json(states));
  });
}

using opmux::Status;
using opmux::c_api::ask;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::view_of;

namespace {

Status write_smaller_call(const std::string& path, const std::string& bytes) {
  if (path.empty() || bytes.empty() || opmux::base::replace_file(path, bytes, 0600)) return {};
  return {opmux::Code::unavailable, "replay.out",
          opmux::base::concat("cannot write ", path, ": ", std::strerror(errno))};
}

}  // namespace

int32_t opmux_recordings(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                         opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.replay().recordings(); });
}

int32_t opmux_replay(opmux_runtime* runtime, opmux_str path, const opmux_replay_options* options,
                     char* buffer, size_t capacity, size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    opmux_replay_options from{};
    if (options != nullptr) {
      Status bad = opmux::c_api::read_sized(*options, sizeof(from), "options", from);
      if (!bad.ok()) return bad;
    }
    if (Status bad =
            only_flags(from.flags, OPMUX_REPLAY_MINIMIZE, "options.flags", "OPMUX_REPLAY_*");
        !bad.ok()) {
      return bad;
    }
    opmux::ReplayOptions read;
    read.minimize = (from.flags & OPMUX_REPLAY_MINIMIZE) != 0;
    auto ids = opmux::c_api::read_list(from.implementations, "options.implementations");
    if (!ids) return ids.error();
    read.implementations = *std::move(ids);
    const auto report = runtime->cpp.replay().run(std::string(view_of(path)), read);
    if (!report) return report.error();
    Status written = write_smaller_call(std::string(view_of(from.out)), report->smaller);
    if (!written.ok()) return written;
    return opmux::c_api::Destination{buffer, capacity, size}.write(to_json(*report));
  });
}
