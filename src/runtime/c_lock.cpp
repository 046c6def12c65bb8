#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::view_of;

int32_t opmux_runtime_freeze(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.freeze().error();
  });
}

int32_t opmux_runtime_freeze_by(opmux_runtime* runtime, opmux_str lockfile, opmux_str name,
                                opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    const auto lock = opmux::Lockfile::parse(view_of(lockfile), view_of(name));
    return lock ? runtime->cpp.freeze(*lock, view_of(name)) : lock.error();
  });
}

int32_t opmux_runtime_frozen(const opmux_runtime* runtime) {
  return runtime != nullptr && runtime->cpp.frozen() ? 1 : 0;
}
