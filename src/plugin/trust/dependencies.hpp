#pragma once

#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "plugin/trust/checked_file.hpp"
#include "plugin/trust/elf_reader.hpp"

namespace opmux::plugin {

inline constexpr size_t kMostLibraries = 64;  ///< limit for libraries that a plugin brings

/// How the libraries of a plugin are checked.
struct LibraryRules {
  ElfRules elf;
  uint64_t max_bytes = 0;  ///< limit for one library
  /// False: checks only the paths of the libraries that the plugin itself needs; they are opened by
  /// these paths.
  bool contents = true;
};

/// Finds and checks the libraries that a plugin at a real path brings with it: those that it, or
/// one of them, needs and that are in a run path or needed by an absolute path, except those in the
/// system's folders. Each must have a trusted path, as the plugin must, and the SONAME by which it
/// is needed, because the dynamic loader recognizes it by that. A library is listed after those
/// that it needs. Fails with the "trust.*" and "elf.*" reasons of check_file(), "elf.soname", or
/// "elf.needed" (the libraries need each other, are too many, or are in a glibc-hwcaps folder).
///
/// Libraries that only the dynamic loader's configuration or LD_LIBRARY_PATH names belong to the
/// system.
Result<std::vector<CheckedLibrary>> check_libraries(const ElfFacts& plugin, const std::string& path,
                                                    const LibraryRules& rules,
                                                    std::vector<Status>& warnings);

/// The digest of a plugin and the libraries that it brings: that of the file if it brings none.
/// Depends on the names and contents of the libraries, not on their folders.
std::string digest_with(const std::string& own, const std::vector<CheckedLibrary>& libraries);

/// The folders that only root can change and in which the dynamic loader looks for libraries of
/// every program: its default folders, and those of its configuration.
std::vector<std::string> system_folders(const std::string& configuration = "/etc/ld.so.conf");

}  // namespace opmux::plugin
