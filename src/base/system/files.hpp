#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/status.hpp>

#include "base/system/clock.hpp"

namespace opmux::base {

/// Owns a file descriptor and closes it in the destructor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  explicit operator bool() const noexcept { return number_ >= 0; }
  int get() const noexcept { return number_; }
  /// Transfers ownership of the descriptor to the caller.
  int release() noexcept { return std::exchange(number_, -1); }
  void reset(int number = -1) noexcept {
    if (number_ >= 0) close(number_);
    number_ = number;
  }

 private:
  int number_ = -1;
};

/// A lock between processes, by flock() on a file that is created if needed and never removed. Held
/// for the lifetime of the object.
class FileLock {
 public:
  /// Waits for the current holder until this time has passed by the clock; 0: tries once. Converts
  /// to false, with errno set, if the lock was not acquired; errno is EWOULDBLOCK if another holds
  /// it.
  FileLock(const std::string& path, int milliseconds, const Clock& clock);
  FileLock(const std::string& path, int milliseconds)
      : FileLock(path, milliseconds, SteadyClock()) {}
  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  Descriptor file_;
};

/// Appends the names of the entries of a folder, without "." and "..", in no particular order.
/// Returns 0, or the errno of the failure. Unlike std::filesystem::directory_iterator, which ends
/// the process, it throws std::bad_alloc if there is not enough memory.
int read_names(const std::string& folder, std::vector<std::string>& names);

/// Writes all bytes to a descriptor at its current position. Returns false with errno set on
/// failure.
bool write_all(int descriptor, std::string_view bytes);

/// Replaces a file atomically: writes a temporary file next to it and renames it, so that readers
/// find either the old or the new text. On failure returns false with errno set and leaves the file
/// unchanged.
bool replace_file(const std::string& path, std::string_view text, unsigned mode);

/// Reads a regular file of at most `most` bytes; does not follow a symbolic link, nor wait for a
/// pipe in place of the file. Fails with "store.read".
Result<std::string> read_whole(const std::string& path, size_t most);
/// The same for an opened file, from the start; `path` is for the message.
Result<std::string> read_whole(const Descriptor& file, const std::string& path, size_t most);

/// Reads a file or pipe that a person named, at most `most` bytes. Follows symbolic links. Does not
/// hang: fails if no process has the pipe open for writing, or if it writes nothing for
/// `milliseconds`. Fails with "store.read".
Result<std::string> read_given(const std::string& path, size_t most, int milliseconds = 10'000);

/// True if the file or folder belongs to this user and others cannot write to it.
bool is_own(const Descriptor& file);
/// True if the file or folder belongs to the given user and others cannot write to it.
bool belongs_to(const Descriptor& file, uid_t user);

/// The folder for persistent data: `state_dir`/store if `state_dir` is given, else
/// $XDG_STATE_HOME/opmux, else ~/.local/state/opmux. Empty if no such folder is known, or if the
/// process runs with raised privileges and `state_dir` is not given.
std::string store_folder(const std::string& state_dir);

/// The folder for data of running processes: `state_dir`/run if `state_dir` is given, else
/// $XDG_RUNTIME_DIR/opmux, else /dev/shm/opmux-UID.
std::string run_folder(const std::string& state_dir);
/// The folders in which processes of another user keep such data unless their environment says
/// otherwise: /run/user/UID/opmux and /dev/shm/opmux-UID.
std::vector<std::string> run_folders_of(uid_t user);

/// Creates a folder and its parents with access for this user only (0700). Fails with
/// "store.folder" if the folder cannot be created or written to, belongs to another user, or is
/// accessible to others.
Status make_private_folder(const std::string& path);

/// The real path of libopmux, or of the program if libopmux is linked into it. Empty if it cannot
/// be determined.
std::string own_library();

/// The folder of libopmux, or `../lib` relative to the program's folder if libopmux is linked into
/// the program. Empty if it cannot be determined.
std::string installation_folder();

}  // namespace opmux::base
