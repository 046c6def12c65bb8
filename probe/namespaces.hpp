#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opmux::probe {

/// The result of entering namespaces.
struct Namespaces {
  std::vector<std::string_view> missing;  ///< "mount_namespace", "ipc_namespace" ...
  bool shared_memory = false;             ///< /dev/shm is private
};

/// Moves this process into new mount, IPC and network namespaces, in a new user namespace if the
/// process lacks the right to do it without one. In the mount namespace all files are read-only,
/// except those of `folder` and /dev/shm, which become empty and limited in size. /dev/shm stays as
/// it is if `plugin` is a path in it. Call it before any thread is started.
Namespaces enter_namespaces(const std::string& folder, std::string_view plugin);

/// Gives up all capabilities, except those to read every file and to lock memory, which drivers and
/// plugins of another owner need. Returns false on failure.
bool drop_capabilities();

}  // namespace opmux::probe
