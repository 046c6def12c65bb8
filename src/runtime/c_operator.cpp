#include <algorithm>
#include <cstring>

#include "dispatch/call.hpp"
#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_policy.hpp"

using opmux::Code;
using opmux::Status;
using opmux::dispatch::OperatorSlot;
using opmux::runtime::CArguments;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::slot_of;
using opmux::runtime::view_of;
using opmux::runtime::write_failure;

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
  std::memcpy(to, &full, std::min<size_t>(to->struct_size, sizeof(full)));
}

Status read_call_options(const opmux_call_options* from, opmux::CallOptions& to) {
  if (from == nullptr) return {};
  opmux_call_options read{};
  if (Status bad = opmux::runtime::read_sized(*from, sizeof(read), "options", read); !bad.ok())
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
  CArguments arguments;
  Status::Detail* failure = arguments.read(*slot.schema, args, count);
  if (failure == nullptr) {
    failure = opmux::dispatch::call(slot, arguments.site(), arguments.values());
  }
  return opmux::runtime::report(failure, error);
}

int32_t opmux_call_operator_with(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                 const opmux_call_options* options, opmux_report* report,
                                 opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("op", op); !bad.ok()) return bad;
    opmux::CallOptions read;
    if (Status bad = read_call_options(options, read); !bad.ok()) return bad;
    CArguments arguments;
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
