#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/probe/verdict.hpp"
#include "plugin/read/descriptor_reader.hpp"
#include "plugin/trust/elf_image.hpp"

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

/// The needed libraries of a file at a real path that are in one of its "$ORIGIN" run-path folders.
/// The dynamic loader would not find them, because it opens the file through a descriptor, which
/// has no folder. Libraries that it finds in LD_LIBRARY_PATH or an absolute folder are not listed.
std::vector<std::string> libraries_beside(const ElfFacts& facts, const std::string& path);

}  // namespace opmux::plugin
