#pragma once

#include <cstddef>
#include <span>

#include <opmux/status.hpp>

#include "plugin/elf_facts.hpp"

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

}  // namespace opmux::plugin
