#pragma once

#include <string>
#include <vector>

namespace opmux::plugin {

/// The environment of a probe process, derived from a null-terminated block. It has the library
/// path, the visible devices and the settings of OpenCL and OpenMP; HOME and TMPDIR are set to
/// `folder` and the language to C. All other variables are dropped.
std::vector<std::string> probe_environment(const char* const* block, const std::string& folder);

}  // namespace opmux::plugin
