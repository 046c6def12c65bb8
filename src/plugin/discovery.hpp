#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::plugin {

/// The real path of libopmux, or of the program if libopmux is linked into it. Empty if it cannot
/// be determined.
std::string own_library();

/// The folder of libopmux, or `../lib` relative to the program's folder if libopmux is linked into
/// the program. Empty if it cannot be determined.
std::string installation_folder();

/// The folder of the backends that are installed with this library: `opmux/backends` in the
/// installation folder.
std::string default_folder();

/// The paths of the entries of a folder whose names end with `suffix`, in bytewise order, without
/// hidden ones. Fails with "plugin.folder" if the folder cannot be read; the code is `not_found` if
/// it does not exist.
Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix);

}  // namespace opmux::plugin
