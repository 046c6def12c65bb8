#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <opmux/opmux.h>
#include <opmux/instance.hpp>
#include <opmux/runtime.hpp>

#include "c_api/error.hpp"
#include "dispatch/compiled_operator.hpp"
#include "runtime/calls/c_arguments.hpp"

/// Definitions of the opaque types of opmux.h. An opmux_operator is a reinterpreted
/// dispatch::OperatorSlot.
struct opmux_runtime {
  opmux::Runtime cpp;
};

struct opmux_registration {
  opmux::Registration cpp;
};

struct opmux_constant {
  opmux::Constant cpp;
};

struct opmux_instance {
  opmux::Instance cpp;
};

struct opmux_plan {
  opmux::Plan cpp;
  opmux::dispatch::OperatorSlot* slot;
  /// The arguments that opmux_plan_run_unchecked uses.
  std::unique_ptr<opmux::runtime::CArguments> arguments;
};

namespace opmux::c_api {

inline dispatch::OperatorSlot& slot_of(opmux_operator* op) {
  return *reinterpret_cast<dispatch::OperatorSlot*>(op);
}

inline std::string_view view_of(opmux_str text) {
  return {text.data == nullptr ? "" : text.data, text.data == nullptr ? 0 : text.size};
}

inline opmux_str str_of(std::string_view text) { return {text.data(), text.size()}; }

/// A buffer for a text, with the semantics of snprintf.
struct Destination {
  char* buffer;
  size_t capacity;
  size_t* size;

  Status write(std::string_view text) const {
    if (size != nullptr) *size = text.size();
    if (capacity == 0) return {};
    if (Status bad = none_null("buffer", buffer); !bad.ok()) return bad;
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
    return {};
  }
};

/// Writes the JSON of the result of `about`.
template <class Ask>
int32_t ask(opmux_runtime* runtime, const Destination& to, opmux_error* error, Ask&& about) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return to.write(to_json(about(runtime->cpp)));
  });
}

}  // namespace opmux::c_api
