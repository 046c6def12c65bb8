#pragma once

#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

namespace opmux::plugin {

/// An opened plugin file. Its code stays mapped until somebody closes the handle.
struct Library {
  void* handle = nullptr;
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;  ///< of the file: its linker's note, else size and time of change
};

/// Opens a file by its path and finds its query function. Opening it again gives the same. If a
/// descriptor is given, the code must come from that very file. The library's constructors run:
/// hold a ThreadStateGuard. Fails with "plugin.open" (with what the system's loader said),
/// "plugin.no_query", "plugin.abi_major", "plugin.swapped".
Result<Library> open_library(const std::string& path, int checked = -1);

}  // namespace opmux::plugin
