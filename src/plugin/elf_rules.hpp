#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/elf_facts.hpp"
#include "plugin/trusted_path.hpp"

namespace opmux::plugin {

/// The rules that judge_elf enforces.
struct ElfRules {
  PathRules paths;
  bool paths_enforced = true;  ///< otherwise untrusted folders are only warnings
  /// The library will be loaded from memory, where $ORIGIN has no meaning.
  bool sealed = false;
};

/// Whether a library at a real path may be loaded. Refuses it with "plugin.no_query",
/// "plugin.abi_major", "elf.interposes" (it exports malloc or similar), "elf.stack" (it requires
/// executable stacks), "elf.needed" (it needs a library by an untrusted path), "elf.run_path" (a
/// run path other than $ORIGIN and trusted absolute folders) or "elf.origin" ($ORIGIN in a sealed
/// copy). Further exported symbols are a warning, "elf.exports".
Status judge_elf(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                 std::vector<Status>& warnings);

/// The folder that a run-path entry beginning with "$ORIGIN" denotes for a library at a real path;
/// nullopt for any other entry.
std::optional<std::string> origin_folder(std::string_view entry, const std::string& path);

}  // namespace opmux::plugin
