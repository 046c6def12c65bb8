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
  /// The file belongs to the installation: only the paths of the libraries that it needs are
  /// checked, unless a digest is required or a sealed copy is loaded.
  bool installed = false;
  std::string keyring = {};
  std::vector<std::string> digests = {};  ///< in lower case
  bool sealed = false;                    ///< the file will be loaded from a copy in memory
  uint64_t max_bytes = PluginOptions().max_bytes;
  Paths paths = Paths::enforced;
  std::string day = {};  ///< day on which keys must be valid; empty: today
};

/// Settings from the options. `sealed` is also set if signatures are required.
TrustSettings trust_settings(const PluginOptions& options);
/// The same for the backends of the installation, which need no signature: a user who can change
/// them can change the library that verifies signatures.
TrustSettings installation_settings(const PluginOptions& options);

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

/// A library that a plugin brings with it; see check_libraries(). Move-only.
struct CheckedLibrary {
  std::string name;  ///< by which it is needed
  /// Open for reading; all fields below were read through it. Closed if only the path was checked.
  base::Descriptor descriptor;
  std::string path;  ///< absolute and without symbolic links
  FileIdentity identity;
  std::string digest;  ///< SHA-256 of the file
};

/// A file that passed every check that does not run its code. Move-only.
struct CheckedFile {
  base::Descriptor descriptor;  ///< open for reading; all fields below were read through it
  std::string path;             ///< absolute and without symbolic links
  FileIdentity identity;
  /// SHA-256 of the file and the libraries that it brings (digest_with()); empty in builds without
  /// SHA-256, which cache no verdicts.
  std::string digest;
  std::string own_digest;  ///< SHA-256 of the file alone
  /// Name of the key that signed the file; empty unless signatures are required.
  std::string signer;
  ElfFacts elf;
  std::vector<CheckedLibrary> libraries;  ///< each after those that it needs
  std::vector<Status> warnings;           ///< findings that do not refuse the file
  bool sealed = false;                    ///< to be loaded from a sealed copy
};

/// Checks a file in this order and refuses it with the first reason found:
/// - path: absolute, and only root and this user can change its folders and links; "trust.*";
/// - contents: a regular file within the size limit, with the required digest or signature, which
///   also cover the libraries that it brings; "trust.*";
/// - library: parsed without running its code; "elf.*", "plugin.no_query", "plugin.abi_major".
/// The libraries that the plugin brings are checked in the same way.
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

/// The contents of a file, and its identity before and after they were read.
struct CheckedBytes {
  FileIdentity identity;
  FileBytes bytes;
};
/// Reads a whole file of at most `most` bytes; `path` is for messages. Fails with "trust.read",
/// "trust.size" or "trust.changed" (the file changed meanwhile).
Result<CheckedBytes> read_checked(int descriptor, const std::string& path, uint64_t most);

}  // namespace opmux::plugin
