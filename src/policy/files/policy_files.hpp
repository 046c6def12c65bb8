#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

#include "registry/snapshot.hpp"

namespace opmux::policy {

/// The users that can write a file or replace it, besides this one and root.
enum class OtherWriters : uint8_t {
  none,
  group,  ///< the group of the file or of a folder on its path
  any,    ///< every user, or the owner of the file or of a folder on its path
};

/// A path and the contents of the file.
struct FileText {
  std::string path, text;
  OtherWriters writers = OtherWriters::none;
  friend bool operator==(const FileText&, const FileText&) = default;
};

inline constexpr size_t kMostFiles = 1024;
inline constexpr size_t kMostBytes = size_t{16} << 20;  ///< per file

/// Whether a file of this name in a policy folder is read: *.yaml and *.json. Names that start with
/// a dot are excluded, because editors and mounted volumes use them for internal files.
bool is_policy_name(std::string_view name);

/// Reads one file; fails like read_policy_files().
Result<FileText> read_policy_file(const std::string& path);

/// Reads the file, or the policy files of a folder in bytewise order of name. Fails with
/// "config.file" if any file cannot be read, and with `unavailable`, "config.changing", if a file
/// or the folder changed in the meantime.
Result<std::vector<FileText>> read_policy_files(const std::string& path);

/// The paths that read_policy_files() reads; the path itself if it is not a folder.
std::vector<std::string> policy_paths(const std::string& path);

/// Parses one or several files into one policy with all their rules. Only one of them may set a
/// given setting other than rules ("policy.said_twice").
Result<Policy> parse_files(const std::vector<FileText>& files,
                           const registry::RegistrySnapshot& registry);

/// SHA-256 of the text; for several files, of the output of sha256sum for them.
std::string digest_of(const std::vector<FileText>& files);

}  // namespace opmux::policy
