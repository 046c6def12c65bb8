#pragma once

#include <string>
#include <vector>

#include "plugin/elf_facts.hpp"

namespace opmux::plugin {

/// The needed libraries of a file at a real path that are in one of its "$ORIGIN" run-path folders.
/// The dynamic loader would not find them, because it opens the file through a descriptor, which
/// has no folder. Libraries that it finds in LD_LIBRARY_PATH or an absolute folder are not listed.
std::vector<std::string> libraries_beside(const ElfFacts& facts, const std::string& path);

}  // namespace opmux::plugin
