#include <opmux/opmux.h>
#include <opmux/points.hpp>
#include <opmux/typed.hpp>

#include "c_api/error.hpp"
#include "c_api/handles.hpp"

using opmux::Code;
using opmux::Status;
using opmux::c_api::ask;
using opmux::c_api::Destination;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::view_of;

namespace {

Status check_arguments(const opmux_arg* args, uint32_t count) {
  return count == 0 ? Status() : none_null("args", args);
}

}  // namespace

int32_t opmux_point_declare(opmux_runtime* runtime, opmux_str signature, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return opmux::detail::declare_point(runtime->cpp, std::string(view_of(signature)));
  });
}

int32_t opmux_point_ask(opmux_runtime* runtime, opmux_str signature, const opmux_arg* args,
                        uint32_t count, opmux_arg* answer, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, answer", runtime, answer); !bad.ok()) return bad;
    if (Status bad = check_arguments(args, count); !bad.ok()) return bad;
    return opmux::detail::find_answer(runtime->cpp, view_of(signature), args, count, *answer);
  });
}

int32_t opmux_point_answer(opmux_runtime* runtime, opmux_str signature, opmux_str backend,
                           opmux_point_fn function, void* context,
                           opmux_registration** registration, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    Status bad = none_null("runtime, function, registration", runtime, function, registration);
    if (!bad.ok()) return bad;
    auto added = opmux::detail::answer_point(
        runtime->cpp, std::string(view_of(signature)), view_of(backend),
        [function, context](const opmux_arg* args, uint32_t count, opmux_arg& answer) {
          return function(context, args, count, &answer) == OPMUX_OK;
        });
    if (!added) return added.error();
    *registration = new opmux_registration{*std::move(added)};
    return {};
  });
}

int32_t opmux_list_points(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                          opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return opmux::list_points(cpp); });
}

int32_t opmux_point_explain(opmux_runtime* runtime, opmux_str point, const opmux_arg* args,
                            uint32_t count, uint32_t format, char* buffer, size_t capacity,
                            size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    if (Status bad = check_arguments(args, count); !bad.ok()) return bad;
    if (format > OPMUX_FORMAT_JSON) {
      return {Code::invalid_argument, "c.format", "format is not an OPMUX_FORMAT_*"};
    }
    const auto info = opmux::explain_point(runtime->cpp, view_of(point), args, count);
    if (!info) return info.error();
    return Destination{buffer, capacity, size}.write(
        format == OPMUX_FORMAT_JSON ? to_json(*info) : info->to_string());
  });
}
