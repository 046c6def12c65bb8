#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "base/system/process.hpp"
#include "status/status_text.hpp"

namespace opmux::status_file {

/// Identifies the calling process, even if its pid is reused later.
ProcessMark own_mark();
/// Start time of a process in this pid namespace, in clock ticks since boot; 0 if it does not
/// exist.
uint64_t start_ticks_of(int64_t pid);

/// The name of the calling process in /proc/self/comm, which the process may change.
std::string own_name();
/// Start time of the calling process in seconds since 1970.
int64_t own_start(const ProcessMark& mark);

inline constexpr std::string_view kStatusFilePrefix = "state-";
inline constexpr std::string_view kNewStatusFile = ".new";  ///< suffix while it is being written

/// The status file of a runtime. Each update replaces it atomically, so that readers find either
/// the old or the new text. The process holds a lock on the file as long as it lives. The file is
/// removed with this object or by exit(). In a forked child this object does nothing. Thread-safe.
class StatusFile {
 public:
  /// Does not create the file; the first replace() does.
  explicit StatusFile(std::string folder);
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  const std::string& path() const { return path_; }

  /// Creates the folder if needed and removes status files of processes that have ended. Fails as
  /// make_private_folder does.
  Status prepare();
  /// Replaces the file. Fails with "state_page.file" and leaves the previous file in place.
  Status replace(std::string_view text);
  /// Removes the file. Later calls of replace() have no effect.
  void remove();

 private:
  /// Writes and locks a temporary file and renames it to `path_`. Returns its descriptor, which
  /// holds the lock; -1 with errno set on failure.
  int write_aside(const std::string& aside, std::string_view text);
  void leave_to_parent();
  void remove_at_exit();

  std::string folder_, path_;
  const uint64_t process_;
  base::ForkMutex writing_;
  bool removed_ = false;
  // Descriptors that hold the locks. A forked child must close its copies, because they would keep
  // the file locked after the parent has ended.
  std::atomic<int> lock_{-1}, next_lock_{-1};
  std::atomic<StatusFile*> next_open_{nullptr};  ///< next status file of the process
};

/// The text of a status file, and whether a process holds its lock.
struct FoundStatusFile {
  std::string text;
  bool held = false;
};
/// Reads a status file. With `owner` it must belong to that user and not be writable for others;
/// without, it may be the file of any user, which a person named. Fails with "state_page.read", or
/// with "state_page.owner" for the file of another user.
Result<FoundStatusFile> read_status_file(const std::string& path,
                                         std::optional<uid_t> owner = std::nullopt);

/// Removes the status files in a folder that no process holds. Returns the number of removed files.
size_t sweep_state_pages(const std::string& folder);

}  // namespace opmux::status_file
