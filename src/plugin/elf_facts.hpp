#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opmux::plugin {

/// What a plugin's file says about itself before any of its code runs.
struct ElfFacts {
  std::string build_id;                 ///< the linker's note in hexadecimal digits; may be empty
  std::vector<std::string> needed;      ///< libraries that the system's loader will look for
  std::vector<std::string> run_path;    ///< folders of RPATH and RUNPATH
  std::vector<uint32_t> query;          ///< N of every exported opmux_plugin_query_vN
  std::vector<std::string> interposes;  ///< exported names that belong to the C library
  std::vector<std::string> exported;    ///< the first other names that it exports
  uint64_t exports = 0;                 ///< how many other names it exports
  bool executable_stack = false;        ///< it asks that stacks of the process be executable
};

}  // namespace opmux::plugin
