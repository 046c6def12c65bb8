#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

namespace opmux::record {

inline constexpr std::string_view kSuffix = ".opmux-replay";

/// A folder of replay files that only this user can read (0700, files 0600). Several processes may
/// share a folder. Thread-safe.
class RecordFolder {
 public:
  RecordFolder(std::string path, size_t most_files)
      : path_(std::move(path)), most_files_(most_files) {}

  const std::string& path() const { return path_; }
  /// The path of the file with this name, which has no suffix.
  std::string path_of(std::string_view name) const;

  /// Writes a file atomically. Fails with "record.known" if the file exists, "record.full" if the
  /// folder has `most_files` files, and "record.folder" or "record.write" on system errors.
  Status write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
  size_t most_files_;
};

}  // namespace opmux::record
