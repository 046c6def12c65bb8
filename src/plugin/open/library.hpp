#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "plugin/read/descriptor_reader.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::plugin {

/// A checked library that a plugin needs.
struct NeededLibrary {
  std::string name;     ///< by which the plugin, or another library, needs it
  std::string path;     ///< real path; empty for a sealed copy
  int descriptor = -1;  ///< through which it is opened; -1: by its path
};

/// A checked file that is opened through its descriptor, so that a file that replaced it at its
/// path is not used.
struct LibraryFile {
  std::string path;  ///< real path; empty for a sealed copy, which has no folder
  int descriptor = -1;
  std::vector<NeededLibrary> libraries = {};  ///< each after those that it needs
};

/// The file and its libraries, as they were checked.
inline LibraryFile library_file(const CheckedFile& file) {
  LibraryFile as{file.path, file.descriptor.get()};
  for (const CheckedLibrary& library : file.libraries) {
    as.libraries.push_back({library.name, library.path, library.descriptor.get()});
  }
  return as;
}

/// An object of the dynamic loader.
struct LoadedObject {
  void* handle = nullptr;
  /// The dynamic loader's name of it if `called` replaced that name.
  char* opened_as = nullptr;
  char* called = nullptr;  ///< the path that is its name now; owned
};

/// An opened plugin file. Its code stays mapped until close_library().
struct Library {
  LoadedObject object;
  opmux_plugin_query_fn query = nullptr;
  std::vector<LoadedObject> libraries = {};  ///< that were opened for it
};

/// Opens the libraries of a file, then the file, and finds its query function. The dynamic loader
/// uses the opened libraries where the file needs their names, and does not look for others; if the
/// process has already loaded a library of such a name, it uses that one. Opening the same file
/// again returns the same library. Afterwards the dynamic loader, debuggers and dladdr know the
/// library by its path, or a sealed copy by the path of its descriptor. The library's constructors
/// run: hold a ThreadStateGuard. Fails with "plugin.open" (and the dynamic loader's message),
/// "plugin.no_query", "plugin.abi_major", or "plugin.swapped" if the opened code is from another
/// file. The descriptors must stay open permanently, that of the file unless it fails with
/// "plugin.open": if a number were reused, the dynamic loader would return this library for another
/// file.
Result<Library> open_library(const LibraryFile& file);

/// Closes the library and those opened for it. Hold a ThreadStateGuard.
void close_library(const Library& library);

}  // namespace opmux::plugin
