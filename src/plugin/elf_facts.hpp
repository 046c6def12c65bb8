#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opmux::plugin {

/// Facts about a plugin's file that are known before any of its code runs.
struct ElfFacts {
  /// The linker's build-id note in hexadecimal; may be empty.
  std::string build_id;
  std::vector<std::string> needed;      ///< libraries that the dynamic loader will look for
  std::vector<std::string> run_path;    ///< folders in RPATH and RUNPATH
  std::vector<uint32_t> query;          ///< N of every exported opmux_plugin_query_vN
  std::vector<std::string> interposes;  ///< exported names that belong to the C library
  std::vector<std::string> exported;    ///< the first names of other exported symbols
  uint64_t exports = 0;                 ///< number of other exported symbols
  bool executable_stack = false;        ///< the library requires executable stacks
};

}  // namespace opmux::plugin
