#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/probe/verdict.hpp"
#include "plugin/read/descriptor_reader.hpp"

namespace opmux::plugin {

/// The folder of the backends that are installed with this library: `opmux/backends` in the
/// installation folder.
std::string default_folder();

/// The paths of the entries of a folder whose names end with `suffix`, in bytewise order, without
/// hidden ones. Fails with "plugin.folder" if the folder cannot be read; the code is `not_found` if
/// it does not exist.
Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix);

/// The part of a plugin's contents that is needed to decide later whether to load it.
Manifest manifest_of(const PluginContents& contents);

}  // namespace opmux::plugin
