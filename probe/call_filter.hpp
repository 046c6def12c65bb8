#pragma once

#include <string_view>

namespace opmux::probe {

/// Permanently installs a seccomp filter for this thread and all threads that it will start. It
/// allows the system calls that computing, reading files, writing to allowed files and threads
/// need; every other call raises SIGSYS and is not carried out. Needs no_new_privs. Returns false
/// if the system has no filters.
bool filter_calls();

/// The name of a system call that the filter refuses; empty if this program does not know it.
std::string_view forbidden_call(int number);

}  // namespace opmux::probe
