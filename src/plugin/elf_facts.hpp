#pragma once

#include <string>
#include <vector>

namespace opmux::plugin {

/// What a plugin's file says about itself before any of its code runs.
struct ElfFacts {
  std::string build_id;               ///< the linker's note in hexadecimal digits; may be empty
  std::vector<std::string> needed;    ///< libraries that the system's loader will look for
  std::vector<std::string> run_path;  ///< folders of RPATH and RUNPATH
  std::vector<std::string> exported;  ///< defined symbols besides the query function
};

}  // namespace opmux::plugin
