#pragma once

#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "plugin/checked_file.hpp"

namespace opmux::plugin {

/// An opened plugin file. Its code stays mapped until the process ends.
struct Library {
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;  ///< of the file: its linker's note, else size and time of change
};

/// Opens a file by its real path and finds its query function. Opening it again gives the same.
/// The floating-point environment and signal mask of the caller survive. Fails with "plugin.open"
/// (with what the system's loader said), "plugin.no_query", "plugin.abi_major".
Result<Library> open_library(const CheckedFile& file);

}  // namespace opmux::plugin
