#pragma once

#include <cstddef>
#include <span>

#include <opmux/status.hpp>

#include "plugin/elf_facts.hpp"

namespace opmux::plugin {

inline constexpr size_t kMostSegments = 128;      ///< program headers of a file
inline constexpr size_t kMostNamedFiles = 512;    ///< needed libraries, or folders of run paths
inline constexpr size_t kMostExportsKept = 16;    ///< names in ElfFacts::exported
inline constexpr size_t kLongestFileName = 4096;  ///< of a needed library or a run path

/// Reads a shared library for this machine as the system's loader would see it: by segments, never
/// by sections. Every offset and count is checked; takes time linear in the size of the file and
/// memory that does not depend on it. Fails with "elf.magic", "elf.class", "elf.machine",
/// "elf.type", "elf.truncated" (something lies beyond the end of the file), "elf.malformed".
Result<ElfFacts> read_elf(std::span<const std::byte> file);

}  // namespace opmux::plugin
