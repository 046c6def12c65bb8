#include "status/status_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>

#include "base/line_records.hpp"
#include "base/locks.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "status/status_text.hpp"

namespace opmux::status_file {
namespace {

/// The first kilobyte of a file in /proc; empty if it cannot be read.
std::string kernel_text(const std::string& path) {
  const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

int64_t seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec;
}

}  // namespace

uint64_t start_ticks_of(int64_t pid) {
  const std::string text = kernel_text(base::concat("/proc/", pid, "/stat"));
  // The process name, in parentheses, may contain any character. The start time is the twentieth
  // field after it.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return 0;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  for (int i = 0; i < 19; ++i) base::take_until(rest, ' ');
  return base::RecordFields(rest, ' ').count();
}

ProcessMark own_mark() {
  std::array<char, 64> name;
  const ssize_t size = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return {{name.data(), size > 0 ? static_cast<size_t>(size) : 0}, start_ticks_of(::getpid())};
}

std::string own_name() {
  const std::string text = kernel_text("/proc/self/comm");
  std::string_view line = text;
  return std::string(base::take_until(line, '\n'));
}

int64_t own_start(const ProcessMark& mark) {
  const auto since_boot = static_cast<int64_t>(mark.start_ticks) / ::sysconf(_SC_CLK_TCK);
  return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + since_boot;
}

namespace {

/// Returns a file name that is unique in the folder. The pid alone is not enough, because processes
/// of other pid namespaces may share the folder.
std::string new_page_name() {
  static std::atomic<uint32_t> count{0};
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return base::concat(kStatusFilePrefix, ::getpid(), "-", now.tv_sec, "-", now.tv_nsec, "-",
                      ++count);
}

/// The status files of this process, linked by `next_open_`. Each change is one store, so a forked
/// child finds a complete list. The files hold the links, because a destructor must not allocate.
constinit base::ForkMutex opening;
constinit std::atomic<StatusFile*> first_open{nullptr};

void close_in_child(std::atomic<int>& descriptor) {
  if (const int number = descriptor.exchange(-1); number >= 0) ::close(number);
}

}  // namespace

StatusFile::StatusFile(std::string folder)
    : folder_(std::move(folder)),
      path_(folder_ + "/" + new_page_name()),
      process_(base::process_number()) {
  base::at_fork_in_child([](void* own) { static_cast<StatusFile*>(own)->leave_to_parent(); }, this);
  remove_at_exit();
}

StatusFile::~StatusFile() {
  remove();
  base::forget_fork_handler(this);
  const std::lock_guard lock(opening);
  std::atomic<StatusFile*>* at = &first_open;
  while (at->load() != nullptr && at->load() != this) at = &at->load()->next_open_;
  if (at->load() == this) at->store(next_open_.load());
}

/// Makes exit() remove the file, for runtimes that are never destroyed.
void StatusFile::remove_at_exit() {
  [[maybe_unused]] static const int kAtExit = std::atexit([] {
    const std::lock_guard lock(opening);
    for (StatusFile* each = first_open.load(); each != nullptr; each = each->next_open_.load()) {
      each->remove();
    }
  });
  const std::lock_guard lock(opening);
  next_open_.store(first_open.load());
  first_open.store(this);
}

Status StatusFile::prepare() {
  if (Status status = base::make_private_folder(folder_); !status.ok()) return status;
  sweep_state_pages(folder_);
  return {};
}

int StatusFile::write_aside(const std::string& aside, std::string_view text) {
  const int file = ::open(aside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return -1;
  next_lock_.store(file);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && base::write_all(file, text) &&
      std::rename(aside.c_str(), path_.c_str()) == 0) {
    return file;
  }
  const int why = errno;
  ::unlink(aside.c_str());
  next_lock_.store(-1);
  ::close(file);
  errno = why;
  return -1;
}

Status StatusFile::replace(std::string_view text) {
  const std::lock_guard turn(writing_);
  if (removed_ || process_ != base::process_number()) return {};
  const int file = write_aside(base::concat(path_, kNewStatusFile), text);
  if (file < 0) {
    return {Code::failed, "state_page.file",
            base::concat("cannot write ", path_, ": ", std::generic_category().message(errno))};
  }
  const int before = lock_.exchange(file);
  next_lock_.store(-1);
  if (before >= 0) ::close(before);
  return {};
}

void StatusFile::remove() {
  if (process_ != base::process_number()) return;
  const std::lock_guard turn(writing_);
  removed_ = true;
  const int held = lock_.exchange(-1);
  if (held < 0) return;
  ::unlink(path_.c_str());
  ::close(held);
}

void StatusFile::leave_to_parent() {
  // Both may be the same descriptor if the fork happened inside replace().
  if (lock_.load() == next_lock_.load()) next_lock_.store(-1);
  close_in_child(lock_);
  close_in_child(next_lock_);
}

}  // namespace opmux::status_file
