#include "dispatch/call/call_frame.hpp"

#include "dispatch/decide/evaluation.hpp"

namespace opmux::dispatch {
namespace {

uint32_t access_flags(const schema::ArgSpec& spec) {
  uint32_t flags = OPMUX_ACCESS_IN;
  if (spec.access == schema::Access::out) flags = OPMUX_ACCESS_OUT;
  if (spec.access == schema::Access::inout) flags = OPMUX_ACCESS_INOUT;
  return spec.constant ? flags | OPMUX_ARG_CONSTANT : flags;
}

}  // namespace

int32_t default_threads(const base::ThreadPool* host) {
  return host == nullptr ? 1 : host->threads();
}

CallSettings CallSettings::with_threads_of(base::ThreadPool* host) const {
  CallSettings settings = *this;
  const bool own = parallel_for != nullptr;
  if (max_threads == 0) settings.max_threads = own ? 1 : default_threads(host);
  if (own || host == nullptr || settings.max_threads < 2 || host->threads() < 2) return settings;
  settings.parallel_for = &base::ThreadPool::parallel_for;
  settings.pool = host->lend(settings.max_threads);
  return settings;
}

void fill_args(const schema::Schema& schema, const schema::Arguments& arguments, opmux_arg* out) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    opmux_arg& arg = out[i];
    arg = {};
    arg.tag = static_cast<uint32_t>(arguments.tags[i]);
    arg.flags = access_flags(schema.args[i]);
    switch (arguments.tags[i]) {
      case ArgTag::none: break;
      case ArgTag::tensor:
        arg.value.tensor = &arguments.values[i].tensor->c();
        if (!arguments.values[i].tensor->present()) arg.tag = OPMUX_ARG_NONE;
        break;
      case ArgTag::floating: arg.value.f64 = arguments.values[i].f64; break;
      case ArgTag::string:
      case ArgTag::integer_list:
      case ArgTag::tensor_list: arg.value.list = *arguments.values[i].list; break;
      default: arg.value.i64 = arguments.values[i].i64; break;
    }
  }
}

Code outcome_of(int32_t returned) {
  if (returned >= OPMUX_OK && returned <= OPMUX_DEVICE_LOST) return static_cast<Code>(returned);
  return Code::failed;
}

void fill_call(const schema::Schema& schema, const schema::Arguments& arguments,
               const CallSettings& settings, const opmux_arg* args, opmux_error* error,
               opmux_call& call) {
  const Device device = device_of(arguments);
  call = {};
  call.struct_size = sizeof call;
  call.arg_count = static_cast<uint32_t>(schema.args.size());
  call.arg_stride = sizeof(opmux_arg);
  call.max_threads = settings.max_threads;
  call.args = args;
  call.device = {device.type, device.id};
  call.stream = settings.stream;
  call.error = error;
  call.tag = settings.tag;
  call.parallel_for = settings.parallel_for;
  call.pool = settings.pool;
}

}  // namespace opmux::dispatch
