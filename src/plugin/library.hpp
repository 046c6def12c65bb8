#pragma once

#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

namespace opmux::plugin {

/// An opened plugin file. Its code stays mapped until the process ends.
struct Library {
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;  ///< of the file: its linker's note, else size and time of change
};

/// The path without links, "." and "..". Fails with "plugin.path".
Result<std::string> real_path(const std::string& path);

/// Opens a file by its real path and finds its query function. Opening it again gives the same.
/// The floating-point environment and signal mask of the caller survive. Fails with "plugin.path",
/// "plugin.open" (with what the system's loader said), "plugin.no_query", "plugin.abi_major".
Result<Library> open_library(const std::string& path);

}  // namespace opmux::plugin
