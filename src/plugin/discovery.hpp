#pragma once

#include <string>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::plugin {

/// The real path of libopmux, or of the program if it is part of that. Empty if the system does not
/// say.
std::string own_library();

/// The folder of libopmux itself, or `../lib` from the program's folder if it is part of the
/// program. Empty if the system does not say.
std::string installation_folder();

/// Where the backends that come with this library lie: `opmux/backends` there.
std::string default_folder();

/// The paths of all files `*.so` of a folder in bytewise order of their names, hidden ones left
/// out; none if there is no such folder. Fails with "plugin.folder" if it cannot be read.
Result<std::vector<std::string>> list_plugins(const std::string& folder);

}  // namespace opmux::plugin
