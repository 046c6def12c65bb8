#pragma once

#include <string>
#include <vector>

namespace opmux::plugin {

/// The environment of a process that tries a plugin, made from a null-terminated block: the
/// library path, which devices are visible, the settings of OpenCL and OpenMP; HOME and TMPDIR are
/// `folder`; the language is C; nothing else.
std::vector<std::string> probe_environment(const char* const* block, const std::string& folder);

}  // namespace opmux::plugin
