#pragma once

#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

namespace opmux::plugin {

/// A file that was checked, to be opened by its descriptor: whatever lies at its path by now.
struct LibraryFile {
  std::string path;  ///< real; empty for a sealed copy, which lies in no folder
  int descriptor = -1;
  /// Libraries that it looks for beside itself, by their paths: see libraries_beside().
  std::vector<std::string> beside = {};
};

/// An opened plugin file. Its code stays mapped until somebody closes it.
struct Library {
  void* handle = nullptr;
  opmux_plugin_query_fn query = nullptr;
  std::vector<void*> beside = {};  ///< handles of libraries that were opened for it
  char* opened_as = nullptr;       ///< the name by which the system's loader opened it, if ...
  char* called = nullptr;          ///< ... it calls it by its path now
};

/// Opens a file and finds its query function. Opening it again gives the same. The system's loader,
/// and with it debuggers and dladdr, know it by its path afterwards; a sealed copy by that of its
/// descriptor. The library's constructors run: hold a ThreadStateGuard. Fails with "plugin.open"
/// (with what the system's loader said), "plugin.no_query", "plugin.abi_major", "plugin.swapped" if
/// the code that was opened is another file's. But for "plugin.open" the descriptor must stay open
/// for ever: a number that is used again makes the system's loader return the library that had it.
Result<Library> open_library(const LibraryFile& file);

/// Hold a ThreadStateGuard.
void close_library(const Library& library);

}  // namespace opmux::plugin
