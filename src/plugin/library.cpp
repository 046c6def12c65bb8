#include "plugin/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/text.hpp"
#include "plugin/bounded_read.hpp"
#include "plugin/mapped_file.hpp"

namespace opmux::plugin {
namespace {

/// Not by way of /proc/self: a debugger would look at itself.
std::string path_of_descriptor(int descriptor) {
  return base::concat("/proc/", getpid(), "/fd/", descriptor);
}

/// What the system's loader said last, with the file's path where it told a descriptor's.
Status cannot_open(std::string_view path, std::string_view opened_as) {
  const char* said = dlerror();
  std::string text = said != nullptr ? said : "no reason";
  if (const size_t at = text.find(opened_as); at != std::string::npos && !path.empty()) {
    text.replace(at, opened_as.size(), path);
  }
  return malformed("open",
                   base::concat("cannot open ", path.empty() ? opened_as : path, ": ", text));
}

/// Why a library has no query function of this version.
Status no_query(void* handle, const std::string& path) {
  for (const int other : {2, 3, 4, 5, 6, 7, 8, 9}) {
    const std::string symbol = base::concat("opmux_plugin_query_v", other);
    if (dlsym(handle, symbol.c_str()) == nullptr) continue;
    return malformed("abi_major",
                     base::concat(path, " was built for version ", other,
                                  " of the plugin contract, this is version ", OPMUX_ABI_MAJOR));
  }
  return malformed("no_query", base::concat(path, " exports no ", OPMUX_PLUGIN_SYMBOL,
                                            ": it is a library, but no opmux plugin"));
}

/// One that the process has already, or the one at this path.
void* open_beside(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (void* known = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return known;
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

link_map* map_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map : nullptr;
}

/// Plugins ask by dladdr where they lie, debuggers where their symbols are. Both read one pointer
/// of the public list of libraries; the old text stays valid for who reads it now.
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
  // The system's loader frees the name that it made itself.
  link_map* map = library.called != nullptr ? map_of(library.handle) : nullptr;
  if (map != nullptr) map->l_name = library.opened_as;
  dlclose(library.handle);
  std::free(library.called);
  for (void* handle : library.beside) dlclose(handle);
}

}  // namespace opmux::plugin
