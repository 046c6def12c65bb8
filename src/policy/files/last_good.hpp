#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "policy/files/policy_files.hpp"

namespace opmux::policy {

/// Stores the last known good policy files, so that a process can start with them if the configured
/// files are broken. Each configured path has a separate file in the folder.
class LastGood {
 public:
  /// keep() creates `folder`, which must belong to the user and have mode 0700. `config` is the
  /// configured path.
  LastGood(std::string folder, const std::string& config);

  const std::string& path() const { return path_; }

  /// busy: another process is storing files at the moment, so that nothing was done; try later.
  enum class Kept : uint8_t { yes, busy };
  /// Atomically replaces the stored files. Does nothing if they are unchanged. Does not wait for
  /// other processes. Fails with "config.last_good" if the files cannot be written.
  Result<Kept> keep(const std::vector<FileText>& files) const;
  /// Fails with "config.last_good" if nothing is stored or the file is damaged.
  Result<std::vector<FileText>> read() const;

 private:
  std::string folder_, path_;
};

}  // namespace opmux::policy
