#include <opmux/state_page.hpp>

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_text.hpp"

using opmux::Status;
using opmux::runtime::Destination;
using opmux::runtime::guarded;
using opmux::runtime::view_of;

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
