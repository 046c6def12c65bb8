#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/trust/elf_image.hpp"
#include "plugin/trust/trusted_path.hpp"

namespace opmux::plugin {

inline constexpr size_t kMostSegments = 128;  ///< limit for program headers of a file
/// Limit for needed libraries, and for run-path folders.
inline constexpr size_t kMostNamedFiles = 512;
inline constexpr size_t kMostExportsKept = 16;  ///< names in ElfFacts::exported
/// Limit for names of needed libraries and run paths.
inline constexpr size_t kLongestFileName = 4096;

/// Parses a shared library for this machine as the dynamic loader does: by segments, not by
/// sections. Every offset and count is checked. Takes time linear in the size of the file and
/// memory independent of it. Fails with "elf.magic", "elf.class", "elf.machine", "elf.type",
/// "elf.truncated" (a part is beyond the end of the file) or "elf.malformed".
Result<ElfFacts> read_elf(std::span<const std::byte> file);

/// The linker's build id of the loaded library or program that contains an address; empty if it has
/// none.
std::string build_id_of_loaded(const void* address);

/// The rules that judge_elf enforces.
struct ElfRules {
  PathRules paths;
  bool paths_enforced = true;  ///< otherwise untrusted folders are only warnings
};

/// Whether a library at a real path may be loaded. Refuses it with "plugin.no_query",
/// "plugin.abi_major", "elf.interposes" (it exports malloc or similar), "elf.stack" (it requires
/// executable stacks), "elf.needed" (it needs a library by an untrusted path) or "elf.run_path" (a
/// run path other than $ORIGIN and trusted absolute folders). Further exported symbols are a
/// warning, "elf.exports".
Status judge_elf(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                 std::vector<Status>& warnings);
/// Only the part about needed libraries and run paths, which also applies to the libraries that a
/// plugin brings.
Status judge_files(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                   std::vector<Status>& warnings);

/// The folder that a run-path entry beginning with "$ORIGIN" denotes for a library at a real path;
/// nullopt for any other entry.
std::optional<std::string> origin_folder(std::string_view entry, const std::string& path);

}  // namespace opmux::plugin
