#pragma once

#include "telemetry/state_page_text.hpp"

namespace opmux::telemetry {

/// What tells this process from all others, and from those that have its number later.
ProcessMark own_mark();
/// When a process of this pid namespace started, in ticks since the boot; 0 if there is none.
uint64_t start_ticks_of(int64_t pid);

/// As the kernel has it; may change.
std::string own_name();
/// When this process started, in seconds since 1970.
int64_t own_start(const ProcessMark& mark);

}  // namespace opmux::telemetry
