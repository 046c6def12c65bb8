#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "base/descriptor.hpp"

namespace opmux::plugin {

/// Who may stand behind a path.
struct PathRules {
  std::vector<uid_t> owners;  ///< of files, folders and links
  /// A real folder whose own ways and those of its parents are not judged: the code that judges
  /// lies there. Empty: there is none.
  std::string own_folder;

  /// Root, this user and whoever owns libopmux, in whose folder it lies.
  static PathRules of_process();
};

/// A file or folder that was reached step by step.
struct OpenedPath {
  base::Descriptor descriptor;
  std::string real_path;  ///< absolute, without links
  std::vector<Status> problems;
};

/// Opens a file for reading. Every folder and link on the way, and the file, must belong to one of
/// the owners, and nobody else may write to them; a sticky folder of root may stand above a private
/// one, and links in it are not followed. What breaks these rules is in `problems`: "trust.owner",
/// "trust.mode", "trust.link", "trust.shared". Fails with "trust.relative", "plugin.path" (nothing
/// there), "trust.kind" (not a regular file), "trust.changed" (replaced meanwhile).
Result<OpenedPath> open_file(const std::string& path, const PathRules& rules);

/// The same for a folder; its descriptor can list it. "trust.kind" if it is none.
Result<OpenedPath> open_folder(const std::string& path, const PathRules& rules);

}  // namespace opmux::plugin
