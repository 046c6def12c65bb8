#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

namespace opmux::record {

inline constexpr std::string_view kSuffix = ".opmux-replay";

/// A folder of replay files that this user alone can read (0700, files 0600). Several processes may
/// share one. Thread-safe.
class RecordFolder {
 public:
  RecordFolder(std::string path, size_t most_files)
      : path_(std::move(path)), most_files_(most_files) {}

  const std::string& path() const { return path_; }
  /// Where a file of that name, without suffix, stands or would stand.
  std::string path_of(std::string_view name) const;

  /// Writes a file beside and puts it in its place. Reasons of failures: "record.known" if it is
  /// there already, "record.full" if the folder has so many files, "record.folder" and
  /// "record.write" for what the system says.
  Status write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
  size_t most_files_;
};

}  // namespace opmux::record
