#include "base/system/files.hpp"

#include <dlfcn.h>

#include <filesystem>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "base/text.hpp"

namespace opmux::base {
namespace {

Status cannot_read(const std::string& path, int why) {
  return {Code::failed, "store.read",
          concat("cannot read ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

FileLock::FileLock(const std::string& path, int milliseconds, const Clock& clock)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!file_) return;
  constexpr uint64_t kNsPerMillisecond = 1'000'000;
  const uint64_t deadline =
      clock.now_ns() + static_cast<uint64_t>(std::max(milliseconds, 0)) * kNsPerMillisecond;
  // Pauses grow, so that hundreds of waiting processes leave the processor to the one inside.
  uint64_t pause_ns = kNsPerMillisecond;
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    if (why == EINTR) continue;
    // A pause may take much longer than it asks for, so the clock decides, not the number of tries.
    const uint64_t now = clock.now_ns();
    if (why != EWOULDBLOCK || now >= deadline) {
      file_.reset();
      errno = why;
      return;
    }
    const timespec pause{0, static_cast<long>(std::min(deadline - now, pause_ns))};
    ::nanosleep(&pause, nullptr);
    pause_ns = std::min(2 * pause_ns, 16 * kNsPerMillisecond);
  }
}

int read_names(const std::string& folder, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr) return errno;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

bool replace_file(const std::string& path, std::string_view text, unsigned mode) {
  std::string aside = path + ".XXXXXX";
  const Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));
  if (!file) return false;
  const bool written = ::fchmod(file.get(), mode) == 0 && write_all(file.get(), text) &&
                       ::fsync(file.get()) == 0 && std::rename(aside.c_str(), path.c_str()) == 0;
  if (!written) {
    const int why = errno;
    ::unlink(aside.c_str());
    errno = why;
  }
  return written;
}

Result<std::string> read_whole(const std::string& path, size_t most) {
  return read_whole(
      Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)), path, most);
}

Result<std::string> read_whole(const Descriptor& file, const std::string& path, size_t most) {
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return cannot_read(path, errno);
  if (!S_ISREG(facts.st_mode) || static_cast<size_t>(facts.st_size) > most) {
    return cannot_read(path, EFBIG);
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t count =
        ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return cannot_read(path, count < 0 ? errno : EIO);
    have += static_cast<size_t>(count);
  }
  return text;
}

Result<std::string> read_given(const std::string& path, size_t most, int milliseconds) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return cannot_read(path, errno);
  std::string text;
  for (;;) {
    char part[16384];
    const ssize_t got = ::read(file.get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      // Only after a read: poll() waits for the first writer of a pipe, and read() returns 0.
      pollfd waiting{file.get(), POLLIN, 0};
      const int ready = ::poll(&waiting, 1, milliseconds);
      if (ready > 0 || (ready < 0 && errno == EINTR)) continue;
      return cannot_read(path, ready == 0 ? ETIMEDOUT : errno);
    }
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) break;
    text.append(part, static_cast<size_t>(got));
    if (text.size() > most) return cannot_read(path, EFBIG);
  }
  struct stat facts{};
  const bool pipe = ::fstat(file.get(), &facts) == 0 && S_ISFIFO(facts.st_mode);
  if (pipe && text.empty()) return cannot_read(path, EPIPE);
  return text;
}

bool is_own(const Descriptor& file) { return belongs_to(file, ::geteuid()); }

bool belongs_to(const Descriptor& file, uid_t user) {
  struct stat facts{};
  return file && ::fstat(file.get(), &facts) == 0 && facts.st_uid == user &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

namespace {

Status cannot(std::string_view what, const std::string& path, int why) {
  return {Code::failed, "store.folder",
          concat("cannot ", what, " ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

std::string store_folder(const std::string& state_dir) {
  if (!state_dir.empty()) return state_dir + "/store";
  const char* state = secure_getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/opmux";
  const char* home = secure_getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/opmux";
  return {};
}

std::string run_folder(const std::string& state_dir) {
  if (!state_dir.empty()) return state_dir + "/run";
  const char* run = secure_getenv("XDG_RUNTIME_DIR");
  if (run != nullptr && *run == '/') return std::string(run) + "/opmux";
  return concat("/dev/shm/opmux-", geteuid());
}

std::vector<std::string> run_folders_of(uid_t user) {
  return {concat("/run/user/", user, "/opmux"), concat("/dev/shm/opmux-", user)};
}

Status make_private_folder(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return cannot("make", part, errno);
    }
    if (at == std::string::npos) break;
  }
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat facts{};
  if (!folder || fstat(folder.get(), &facts) != 0) {
    return cannot("open", path, errno);
  }
  if (facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
    return {Code::failed, "store.folder",
            path + " must be a folder that belongs to this user and has mode 0700"};
  }
  if (faccessat(folder.get(), ".", W_OK, AT_EACCESS) != 0) {
    return cannot("write to", path, errno);
  }
  return {};
}

namespace {

std::filesystem::path own_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed);
}

}  // namespace

std::string own_library() {
  std::error_code failed;
  Dl_info self{};
  const bool known =
      dladdr(reinterpret_cast<void*>(&own_library), &self) != 0 && self.dli_fname != nullptr;
  const std::filesystem::path here =
      known ? std::filesystem::canonical(self.dli_fname, failed) : std::filesystem::path();
  return here.empty() ? own_program().string() : here.string();
}

std::string installation_folder() {
  const std::filesystem::path program = own_program(), library = own_library();
  if (library != program) return library.parent_path().string();
  if (program.empty()) return {};
  return (program.parent_path().parent_path() / "lib").string();
}

}  // namespace opmux::base
