#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/plugin_options.hpp>
#include <opmux/status.hpp>

#include "base/descriptor.hpp"
#include "plugin/elf_facts.hpp"

namespace opmux::plugin {

/// What a file must satisfy.
struct TrustSettings {
  enum class Paths {
    enforced,
    reported,  ///< a path that others can write to is a warning: a developer's build folder
  };

  Trust trust = Trust::any;
  std::string keyring = {};
  std::vector<std::string> digests = {};  ///< in lower case
  bool sealed = false;                    ///< the file will be loaded from memory
  uint64_t max_bytes = PluginOptions().max_bytes;
  Paths paths = Paths::enforced;
  std::string day = {};  ///< on which keys must be good; empty: today
};

/// As the options say; sealed if signatures are enforced.
TrustSettings trust_settings(const PluginOptions& options);

/// Which file it is: another one in its place differs, and so does a changed one.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;  ///< of the inode

  bool operator==(const FileIdentity&) const = default;
};

/// The identity of an open file. Fails with "trust.read".
Result<FileIdentity> identity_of(int descriptor);

/// A file that passed every check that needs none of its code to run. Move-only.
struct CheckedFile {
  base::Descriptor descriptor;  ///< for reading; everything below was read through it
  std::string path;             ///< real: absolute, without links
  FileIdentity identity;
  std::string digest;  ///< SHA-256; empty if built without: then nothing is remembered by it
  std::string signer;  ///< name of the key that signed it; empty if that was not asked for
  ElfFacts elf;
  std::vector<std::string> beside;  ///< paths of libraries that it needs and that lie beside it
  std::vector<Status> warnings;     ///< what was found and did not refuse it
};

/// Checks a file in this order, and refuses it with the first reason found:
///  - path: absolute, of folders and links that only root and this user can change; "trust.*";
///  - contents: a regular file, not too large, its digest or signature as asked; "trust.*";
///  - library: read by our own reader; "elf.*", "plugin.no_query", "plugin.abi_major".
Result<CheckedFile> check_file(const std::string& path, const TrustSettings& settings);

/// Which of the three refused: "path", "contents" or "library"; empty for any other reason.
std::string_view check_of(std::string_view reason);

/// All bytes of a file as it is now. Fails with "trust.read" if it has less than `size`.
struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> view() const { return {data.get(), size}; }
};
Result<FileBytes> read_bytes(int descriptor, uint64_t size);

}  // namespace opmux::plugin
