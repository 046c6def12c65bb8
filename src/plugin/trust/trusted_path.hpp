#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "base/system/files.hpp"

namespace opmux::plugin {

/// The users that may own the components of a path.
struct PathRules {
  std::vector<uid_t> owners;  ///< user ids that may own files, folders and links
  /// The real folder of libopmux. The permissions of it and its parents are not checked, because
  /// this code is loaded from there. Empty if unknown.
  std::string own_folder;

  /// Root, the user of this process and the owner of libopmux; the folder is that of libopmux.
  static PathRules of_process();
};

/// A file or folder that was opened component by component.
struct OpenedPath {
  base::Descriptor descriptor;
  std::string real_path;  ///< absolute, without links
  /// Violations of the rules that did not prevent opening it.
  std::vector<Status> problems;
};

/// Opens a file for reading. The file and every folder and link on its path must be owned by a
/// trusted user and writable by no other. A sticky folder of root, such as /tmp, may contain a
/// private folder, but links in it are not trusted. Violations are listed in `problems`:
/// "trust.owner", "trust.mode", "trust.link", "trust.shared". Fails with "trust.relative",
/// "plugin.path" (not found), "trust.kind" (not a regular file) or "trust.changed" (replaced while
/// it was opened).
Result<OpenedPath> open_file(const std::string& path, const PathRules& rules);

/// The same for a folder, whose descriptor can be used to list it. Fails with "trust.kind" if it is
/// a file.
Result<OpenedPath> open_folder(const std::string& path, const PathRules& rules);

}  // namespace opmux::plugin
