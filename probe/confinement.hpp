#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opmux::probe {

/// The result of confine().
struct Confined {
  bool done = false;  ///< false: the system lacks limits or seccomp filters
  /// Names of the other layers that the system lacks: "mount_namespace", "ipc_namespace",
  /// "network_namespace", "landlock".
  std::vector<std::string_view> missing;
};

/// Permanently confines this process, which must have one thread:
/// - It dies with its parent, and the system ends it first when memory runs out.
/// - Namespaces: see enter_namespaces(). Landlock: see restrict_files().
/// - It has no capabilities that change anything, and gets no new privileges.
/// - Limits of processor time, memory, size and number of files.
/// - A filter of system calls: see filter_calls().
/// `folder` stays writable and becomes the working directory. `plugin` is the path of the plugin.
Confined confine(const std::string& folder, std::string_view plugin);

}  // namespace opmux::probe
