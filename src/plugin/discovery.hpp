#pragma once

#include <string>
#include <string_view>
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

/// The paths of everything in a folder whose name ends so, in bytewise order, hidden names left
/// out. Fails with "plugin.folder" if it cannot be read, with `not_found` if there is none.
Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix);

}  // namespace opmux::plugin
