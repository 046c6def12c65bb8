#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/system/files.hpp"

namespace opmux::policy {

/// Debounces file changes, which come in bursts: the action is due after a quiet period, at the
/// latest a fixed time after the first change. The last change of a burst is never missed.
class Debounce {
 public:
  static constexpr uint64_t kQuiet = 50'000'000, kLatest = 250'000'000;  ///< ns
  static constexpr uint64_t kIdle = UINT64_MAX;

  void note(uint64_t now_ns) {
    if (first_ == kIdle) first_ = now_ns;
    last_ = now_ns;
  }
  /// When to act; kIdle if nothing changed. While a file is still being written, the quiet period
  /// does not apply.
  uint64_t due(bool still_written = false) const {
    if (first_ == kIdle) return kIdle;
    return still_written ? first_ + kLatest : std::min(last_ + kQuiet, first_ + kLatest);
  }
  void clear() { first_ = kIdle; }

 private:
  uint64_t first_ = kIdle, last_ = 0;
};

/// Detects possible changes of a file, or of the policy files in a folder: a file is written,
/// replaced by a rename, replaced behind a symbolic link, or deleted and created again. Uses
/// inotify where it works and polls otherwise: on network file systems, or when inotify is out of
/// watches. Not thread-safe.
class PathWatch {
 public:
  enum class Way : uint8_t { kernel, looking };
  static constexpr uint64_t kLookEvery = 100'000'000;  ///< polling interval in ns

  explicit PathWatch(std::string path, Way wanted = Way::kernel);

  Way way() const { return descriptor_ ? Way::kernel : Way::looking; }
  /// Descriptor that is readable when there may be a change; -1 if changed() must be polled.
  int descriptor() const { return descriptor_.get(); }

  /// Whether something may have changed since the last call.
  bool changed();
  /// Whether a file was modified and not closed yet.
  bool still_written() const { return !written_.empty(); }

 private:
  /// Per path: identity, size and times of the file that it resolves to, or the error number.
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
    std::set<std::string> names;  ///< names to watch; "*" = every policy file
  };
  std::map<int, Folder> folders_;  ///< by inotify watch descriptor
  std::set<std::string> written_;  ///< files that were modified and not closed yet
  Looks seen_;
};

}  // namespace opmux::policy
