#pragma once

#include <string>
#include <vector>

#include "plugin/elf_facts.hpp"

namespace opmux::plugin {

/// The libraries that a file at a real path needs and that lie where its run path says "$ORIGIN".
/// The system's loader would not find them: it opens the file by its descriptor, which lies in no
/// folder. Those that it finds without, in LD_LIBRARY_PATH or an absolute folder, are left to it.
std::vector<std::string> libraries_beside(const ElfFacts& facts, const std::string& path);

}  // namespace opmux::plugin
