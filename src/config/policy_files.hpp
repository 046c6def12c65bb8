#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::config {

/// A file as it was read.
struct FileText {
  std::string path, text;
  friend bool operator==(const FileText&, const FileText&) = default;
};

inline constexpr size_t kMostFiles = 1024;
inline constexpr size_t kMostBytes = size_t{16} << 20;  ///< of one file

/// Whether files of this name in a folder are read: *.yaml and *.json, but for what starts with a
/// dot, which is an editor's or a volume's own.
bool is_policy_name(std::string_view name);

/// One file, whole; fails as below.
Result<FileText> read_policy_file(const std::string& path);

/// The file, or those of a folder that end in .yaml or .json, bytewise by name. All or nothing:
/// fails with "config.file" if one cannot be read, and with `unavailable`, "config.changing", if
/// something changed while it was read.
Result<std::vector<FileText>> read_policy_files(const std::string& path);

/// The paths that read_policy_files would read; the path itself if it is no folder.
std::vector<std::string> policy_paths(const std::string& path);

}  // namespace opmux::config
