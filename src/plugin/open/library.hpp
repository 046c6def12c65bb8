#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "plugin/read/descriptor_reader.hpp"

namespace opmux::plugin {

/// A checked file that is opened through its descriptor, so that a file that replaced it at its
/// path is not used.
struct LibraryFile {
  std::string path;  ///< real path; empty for a sealed copy, which has no folder
  int descriptor = -1;
  /// Paths of needed libraries in its $ORIGIN folders: see libraries_beside().
  std::vector<std::string> beside = {};
};

/// An opened plugin file. Its code stays mapped until close_library().
struct Library {
  void* handle = nullptr;
  opmux_plugin_query_fn query = nullptr;
  /// Handles of the needed libraries that were opened for it.
  std::vector<void*> beside = {};
  /// The dynamic loader's name of it if `called` replaced that name.
  char* opened_as = nullptr;
  char* called = nullptr;  ///< the path that is its name now; owned
};

/// Opens a file and finds its query function. Opening the same file again returns the same library.
/// Afterwards the dynamic loader, debuggers and dladdr know the library by its path, or a sealed
/// copy by the path of its descriptor. The library's constructors run: hold a ThreadStateGuard.
/// Fails with "plugin.open" (and the dynamic loader's message), "plugin.no_query",
/// "plugin.abi_major", or "plugin.swapped" if the opened code is from another file. Unless it fails
/// with "plugin.open", the descriptor must stay open permanently: if its number were reused, the
/// dynamic loader would return this library for another file.
Result<Library> open_library(const LibraryFile& file);

/// Closes the library and those opened for it. Hold a ThreadStateGuard.
void close_library(const Library& library);

}  // namespace opmux::plugin
