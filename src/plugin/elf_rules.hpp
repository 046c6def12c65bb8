#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/elf_facts.hpp"
#include "plugin/trusted_path.hpp"

namespace opmux::plugin {

struct ElfRules {
  PathRules paths;
  bool paths_enforced = true;  ///< else folders that others can write to are warnings
  bool sealed = false;         ///< it will be loaded from memory: $ORIGIN has no meaning there
};

/// Whether a library at a real path may be loaded. Refuses with "plugin.no_query",
/// "plugin.abi_major", "elf.interposes" (it exports malloc or the like), "elf.stack" (it would make
/// stacks executable), "elf.needed" (a library by an untrusted path), "elf.run_path" (other folders
/// than $ORIGIN and absolute trusted ones), "elf.origin". Further exported symbols are a
/// warning, "elf.exports".
Status judge_elf(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                 std::vector<Status>& warnings);

/// The folder that an entry of a run path means if it begins with "$ORIGIN", for a library at a
/// real path; nothing for any other entry.
std::optional<std::string> origin_folder(std::string_view entry, const std::string& path);

}  // namespace opmux::plugin
