// Loads a backend that is a shared library, as the host does.
#pragma once

#include <dlfcn.h>

#include <stdexcept>

#include "abi_call.hpp"

namespace opmux::testing {

inline LoadedPlugin load_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  void* symbol = dlsym(library, OPMUX_PLUGIN_SYMBOL);
  return LoadedPlugin(reinterpret_cast<opmux_plugin_query_fn>(symbol));
}

}  // namespace opmux::testing
