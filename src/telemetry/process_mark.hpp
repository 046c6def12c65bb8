#pragma once

#include "telemetry/state_page_text.hpp"

namespace opmux::telemetry {

/// Identifies the calling process, even if its pid is reused later.
ProcessMark own_mark();
/// Start time of a process in this pid namespace, in clock ticks since boot; 0 if it does not
/// exist.
uint64_t start_ticks_of(int64_t pid);

/// The name of the calling process in /proc/self/comm, which the process may change.
std::string own_name();
/// Start time of the calling process in seconds since 1970.
int64_t own_start(const ProcessMark& mark);

}  // namespace opmux::telemetry
