#pragma once

#include <string>

namespace opmux::probe {

/// Permanently restricts this process with Landlock, as far as the kernel's version of it allows.
/// Files can be created, changed and removed only in `folder` and, with `shared_memory`, in
/// /dev/shm; files of devices that accelerators use can be opened for writing. Programs cannot be
/// started. Processes outside cannot be traced, opened in /proc or, with newer kernels, signalled.
/// Needs no_new_privs. Returns false if the kernel has no Landlock.
bool restrict_files(const std::string& folder, bool shared_memory);

}  // namespace opmux::probe
