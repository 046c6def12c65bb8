#include "plugin/open/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/locks.hpp"
#include "base/status.hpp"
#include "base/system/process.hpp"
#include "base/text.hpp"
#include "plugin/host.hpp"
#include "plugin/open/opened_file.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

/// Not /proc/self, because a debugger would resolve that to itself.
std::string path_of_descriptor(int descriptor) {
  return base::concat("/proc/", getpid(), "/fd/", descriptor);
}

/// The last error of the dynamic loader, with the file's path in place of the descriptor's path.
Status cannot_open(std::string_view path, std::string_view opened_as) {
  const char* said = dlerror();
  std::string text = said != nullptr ? said : "no reason given";
  if (const size_t at = text.find(opened_as); at != std::string::npos && !path.empty()) {
    text.replace(at, opened_as.size(), path);
  }
  return malformed("open",
                   base::concat("cannot open ", path.empty() ? opened_as : path, ": ", text));
}

/// Explains why a library has no query function of this ABI version.
Status no_query(void* handle, const std::string& path) {
  for (const int other : {2, 3, 4, 5, 6, 7, 8, 9}) {
    const std::string symbol = base::concat("opmux_plugin_query_v", other);
    if (dlsym(handle, symbol.c_str()) == nullptr) continue;
    return malformed("abi_major", base::concat(path, " was built for plugin ABI version ", other,
                                               "; this build supports version ", OPMUX_ABI_MAJOR));
  }
  return malformed("no_query", base::concat(path, " exports no ", OPMUX_PLUGIN_SYMBOL,
                                            ": it is a library, but not an opmux plugin"));
}

link_map* map_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map : nullptr;
}

/// Sets the name of an object in the dynamic loader's link map, because plugins (through dladdr)
/// and debuggers look for their files by it, and because the dynamic loader compares it with
/// libraries that are needed by a path. The old text stays valid for concurrent readers.
void call_it(const std::string& name, std::string_view opened_as, LoadedObject& object) {
  link_map* map = map_of(object.handle);
  if (name.empty() || map == nullptr || opened_as != map->l_name) return;
  object.called = strdup(name.c_str());
  if (object.called == nullptr) return;
  object.opened_as = map->l_name;
  map->l_name = object.called;
}

Status swapped(std::string_view path) {
  return malformed("swapped", base::concat(path, " is not the file that was checked"));
}

/// Opens a library that `plugin` needs, unless one of this name is already loaded.
Result<LoadedObject> open_needed(const NeededLibrary& library, std::string_view plugin) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  LoadedObject object;
  object.handle = dlopen(library.name.c_str(), kHow | RTLD_NOLOAD);
  if (object.handle != nullptr) return object;
  const bool by_descriptor = library.descriptor >= 0;
  const std::string opened_as =
      by_descriptor ? path_of_descriptor(library.descriptor) : library.path;
  object.handle = dlopen(opened_as.c_str(), kHow);
  if (object.handle == nullptr) return cannot_open(plugin, opened_as);
  if (!by_descriptor) return object;
  const link_map* map = map_of(object.handle);
  if (map == nullptr || !lies_in(map->l_ld, library.descriptor)) return swapped(library.name);
  const bool by_path = library.name.find('/') != library.name.npos;
  call_it(by_path ? library.name : library.path, opened_as, object);
  return object;
}

void close_object(const LoadedObject& object) {
  // The dynamic loader frees the name that it allocated, so that name is restored first.
  link_map* map = object.called != nullptr ? map_of(object.handle) : nullptr;
  if (map != nullptr) map->l_name = object.opened_as;
  dlclose(object.handle);
  std::free(object.called);
}

}  // namespace

Result<Library> open_library(const LibraryFile& file) {
  const std::string name = path_of_descriptor(file.descriptor);
  const std::string& path = file.path.empty() ? name : file.path;
  Library library;
  for (const NeededLibrary& needed : file.libraries) {
    Result<LoadedObject> object = open_needed(needed, path);
    if (!object) return object.error();
    library.libraries.push_back(*object);
  }
  library.object.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.object.handle == nullptr) return cannot_open(file.path, name);
  library.query =
      reinterpret_cast<opmux_plugin_query_fn>(dlsym(library.object.handle, OPMUX_PLUGIN_SYMBOL));
  if (library.query == nullptr) return no_query(library.object.handle, path);
  if (!lies_in(reinterpret_cast<const void*>(library.query), file.descriptor)) return swapped(path);
  call_it(file.path, name, library.object);
  return library;
}

void close_library(const Library& library) {
  close_object(library.object);
  for (const LoadedObject& needed : library.libraries) close_object(needed);
}

}  // namespace opmux::plugin
