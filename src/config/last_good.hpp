#pragma once

#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "config/policy_files.hpp"

namespace opmux::config {

/// The last policy files that came into force, kept in a folder of the user's own so that a start
/// with broken files has something to go on with. Each set of files has its place, by their path.
class LastGood {
 public:
  /// `folder` is made when something is kept; 0700 and the user's own, or nothing is kept.
  LastGood(std::string folder, const std::string& config);

  const std::string& path() const { return path_; }

  /// Replaces what was kept, whole or not at all. Does nothing if it is the same.
  Status keep(const std::vector<FileText>& files) const;
  /// Fails with "config.last_good" if nothing is kept, or what is there was damaged.
  Result<std::vector<FileText>> read() const;

 private:
  std::string folder_, path_;
};

}  // namespace opmux::config
