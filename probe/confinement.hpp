#pragma once

#include <string_view>

namespace opmux::probe {

/// Limits this process for ever: processor time, memory, size and number of files; no new rights;
/// it dies with whoever started it; and system calls that reach the network, start programs or
/// processes, or touch other processes or the system raise SIGSYS. Threads are allowed. False if
/// the system cannot do that.
bool confine();

/// The name of a system call that the filter knows, "something" for others.
std::string_view forbidden_call(int number);

}  // namespace opmux::probe
