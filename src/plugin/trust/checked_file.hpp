#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/options.hpp>
#include <opmux/status.hpp>

#include "base/system/files.hpp"
#include "plugin/trust/elf_image.hpp"

namespace opmux::plugin {

/// The requirements on a plugin file.
struct TrustSettings {
  enum class Paths {
    enforced,
    /// A path that others can write to is only a warning, for developers' build folders.
    reported,
  };

  Trust trust = Trust::any;
  std::string keyring = {};
  std::vector<std::string> digests = {};  ///< in lower case
  bool sealed = false;                    ///< the file will be loaded from a copy in memory
  uint64_t max_bytes = PluginOptions().max_bytes;
  Paths paths = Paths::enforced;
  std::string day = {};  ///< day on which keys must be valid; empty: today
};

/// Settings from the options. `sealed` is also set if signatures are required.
TrustSettings trust_settings(const PluginOptions& options);

/// Identifies a file and its version: a replaced or modified file has another identity.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;  ///< last change of the inode

  bool operator==(const FileIdentity&) const = default;
};

/// The identity of an open file. Fails with "trust.read".
Result<FileIdentity> identity_of(int descriptor);

/// A file that passed every check that does not run its code. Move-only.
struct CheckedFile {
  base::Descriptor descriptor;  ///< open for reading; all fields below were read through it
  std::string path;             ///< absolute and without symbolic links
  FileIdentity identity;
  std::string digest;  ///< SHA-256; empty in builds without SHA-256, which cache no verdicts
  /// Name of the key that signed the file; empty unless signatures are required.
  std::string signer;
  ElfFacts elf;
  /// Paths of needed libraries that are in an $ORIGIN folder of the file.
  std::vector<std::string> beside;
  std::vector<Status> warnings;  ///< findings that do not refuse the file
};

/// Checks a file in this order and refuses it with the first reason found:
/// - path: absolute, and only root and this user can change its folders and links; "trust.*";
/// - contents: a regular file within the size limit, with the required digest or signature;
///   "trust.*";
/// - library: parsed without running its code; "elf.*", "plugin.no_query", "plugin.abi_major".
Result<CheckedFile> check_file(const std::string& path, const TrustSettings& settings);

/// Which of the three checks has this reason: "path", "contents" or "library"; empty if none.
std::string_view check_of(std::string_view reason);

/// The contents of a file. read_bytes fails with "trust.read" if the file has fewer than `size`
/// bytes.
struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> view() const { return {data.get(), size}; }
};
Result<FileBytes> read_bytes(int descriptor, uint64_t size);

}  // namespace opmux::plugin
