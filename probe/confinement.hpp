#pragma once

#include <string_view>

namespace opmux::probe {

/// Permanently limits this process: processor time, memory, size and number of files, and no new
/// privileges. The process dies with its parent. System calls that reach the network, start
/// programs or processes, or affect other processes or the system raise SIGSYS. Threads are
/// allowed. Returns false if the system does not support this.
bool confine();

/// The name of a system call that the filter knows, else "unknown_system_call".
std::string_view forbidden_call(int number);

}  // namespace opmux::probe
