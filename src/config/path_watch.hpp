#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace opmux::config {

/// Notices that a file, or the policy files of a folder, may have others contents than before,
/// however they came: written, renamed over, replaced behind a link, deleted and made again. Asks
/// the kernel (inotify) where that tells, looks by itself where it does not: on network file
/// systems, or when the kernel has no room. One thread at a time.
class PathWatch {
 public:
  enum class Way : uint8_t { kernel, looking };
  static constexpr uint64_t kLookEvery = 100'000'000;

  explicit PathWatch(std::string path, Way wanted = Way::kernel);

  Way way() const { return descriptor_ ? Way::kernel : Way::looking; }
  /// Readable when there may be something; -1 if it has to look.
  int descriptor() const { return descriptor_.get(); }

  /// Whether something may have changed since the last call.
  bool changed();
  /// Somebody wrote to a file and has not closed it yet.
  bool still_written() const { return !written_.empty(); }

 private:
  /// Identity and times of everything on the way: links as links, files as files.
  using Looks = std::map<std::string, std::vector<int64_t>>;

  void follow();
  void watch_folder(const std::string& folder, const std::string& name);
  bool read_events();
  bool concerns(int folder, const std::string& name) const;
  Looks look() const;

  std::string path_;
  base::Descriptor descriptor_;
  struct Folder {
    std::string path;
    std::set<std::string> names;  ///< that matter there; "*": every policy file
  };
  std::map<int, Folder> folders_;  ///< by watch number
  std::set<std::string> written_;
  Looks seen_;
};

}  // namespace opmux::config
