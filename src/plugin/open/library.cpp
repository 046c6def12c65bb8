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

/// Opens a needed library: the one of this name that is already loaded, else the one at this path.
void* open_beside(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (void* known = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return known;
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

link_map* map_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map : nullptr;
}

/// Sets the name of the library in the dynamic loader's link map to its path, because plugins
/// (through dladdr) and debuggers look for their files by it. The old text stays valid for
/// concurrent readers.
void call_by_path(const std::string& path, std::string_view opened_as, Library& library) {
  link_map* map = map_of(library.handle);
  if (path.empty() || map == nullptr || opened_as != map->l_name) return;
  library.called = strdup(path.c_str());
  if (library.called == nullptr) return;
  library.opened_as = map->l_name;
  map->l_name = library.called;
}

}  // namespace

Result<Library> open_library(const LibraryFile& file) {
  const std::string name = path_of_descriptor(file.descriptor);
  Library library;
  for (const std::string& path : file.beside) {
    void* handle = open_beside(path);
    if (handle == nullptr) return cannot_open(file.path, name);
    library.beside.push_back(handle);
  }
  library.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) return cannot_open(file.path, name);
  const std::string& path = file.path.empty() ? name : file.path;
  library.query =
      reinterpret_cast<opmux_plugin_query_fn>(dlsym(library.handle, OPMUX_PLUGIN_SYMBOL));
  if (library.query == nullptr) return no_query(library.handle, path);
  if (!lies_in(reinterpret_cast<const void*>(library.query), file.descriptor)) {
    return malformed("swapped", base::concat(path, " is not the file that was checked"));
  }
  call_by_path(file.path, name, library);
  return library;
}

void close_library(const Library& library) {
  // The dynamic loader frees the name that it allocated, so that name is restored first.
  link_map* map = library.called != nullptr ? map_of(library.handle) : nullptr;
  if (map != nullptr) map->l_name = library.opened_as;
  dlclose(library.handle);
  std::free(library.called);
  for (void* handle : library.beside) dlclose(handle);
}

}  // namespace opmux::plugin
