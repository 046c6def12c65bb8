#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "base/process.hpp"

namespace opmux::telemetry {

inline constexpr std::string_view kStatePagePrefix = "state-";
inline constexpr std::string_view kNewStatePage = ".new";  ///< ends the name of one on its way

/// The file in which a runtime tells what it does: replaced as a whole, so that readers find an old
/// or a new one, and locked for as long as its process lives. It goes with this object, or when the
/// process ends by exit(). A forked child leaves it to the parent. Thread-safe.
class StatePageFile {
 public:
  /// Nothing is made before the first page.
  explicit StatePageFile(std::string folder);
  ~StatePageFile();
  StatePageFile(const StatePageFile&) = delete;
  StatePageFile& operator=(const StatePageFile&) = delete;

  const std::string& path() const { return path_; }

  /// Makes the folder, if it is not there, and removes pages of processes that have ended. Fails as
  /// make_private_folder does.
  Status prepare();
  /// Fails with "state_page.file"; then the page before stays.
  Status replace(std::string_view text);
  /// For good: later pages are dropped.
  void remove();

 private:
  /// The descriptor of a file beside the page that holds the text and the lock; -1 with errno set.
  int write_aside(const std::string& aside, std::string_view text);
  void leave_to_parent();

  std::string folder_, path_;
  const uint64_t process_;
  base::ForkMutex writing_;
  bool removed_ = false;
  // Locks that a child must let go of: its own copies would hold them beyond the parent's end.
  std::atomic<int> lock_{-1}, next_lock_{-1};
};

/// What is in a page's file, and whether its process still holds it. Fails with "state_page.read".
struct FoundPage {
  std::string text;
  bool held = false;
};
Result<FoundPage> read_state_page_file(const std::string& path);

/// Removes the pages in a folder that no process holds any more; returns how many.
size_t sweep_state_pages(const std::string& folder);

}  // namespace opmux::telemetry
