#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include <cerrno>
#include <string>

#include "base/descriptor.hpp"

namespace opmux::base {

/// A lock between processes, by flock() on a file that is created if needed and never removed. Held
/// for the lifetime of the object.
class FileLock {
 public:
  /// Waits at most this long for the current holder. Converts to false, with errno set, if the lock
  /// was not acquired.
  FileLock(const std::string& path, int milliseconds)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (!file_) return;
    constexpr timespec kPause{0, 1'000'000};
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      const int why = errno;
      if (why == EINTR) continue;
      if (why != EWOULDBLOCK || milliseconds-- <= 0) {
        file_.reset();
        errno = why;
        return;
      }
      ::nanosleep(&kPause, nullptr);
    }
  }
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  Descriptor file_;
};

}  // namespace opmux::base
