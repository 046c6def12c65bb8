#include "c_api/error.hpp"
#include "c_api/handles.hpp"

using opmux::Status;
using opmux::c_api::ask;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::view_of;

int32_t opmux_list_quarantine(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                              opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.health().quarantine(); });
}

int32_t opmux_clear_quarantine(opmux_runtime* runtime, opmux_str implementation, uint64_t* cleared,
                               opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    const auto count = runtime->cpp.health().clear_quarantine(view_of(implementation));
    if (!count) return count.error();
    if (cleared != nullptr) *cleared = *count;
    return {};
  });
}

int32_t opmux_crash_journal(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                            opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error,
             [](auto& cpp) { return cpp.health().crash_journal(); });
}
