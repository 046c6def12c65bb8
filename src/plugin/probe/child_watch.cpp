#include "plugin/probe/child_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/text.hpp"

namespace opmux::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks{20};
constexpr milliseconds kLongestDeath{500};

/// The use of memory and threads that /proc shows for a process; zeros if it is unknown.
struct ChildUsage {
  unsigned long data = 0;    ///< private memory in bytes, touched or not
  unsigned long shared = 0;  ///< touched shared memory without files, in bytes
  unsigned long threads = 0;
};

ChildUsage usage_of(pid_t process) {
  ChildUsage usage;
  const std::string path = base::concat("/proc/", process, "/status");
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "re"), fclose);
  if (file == nullptr) return usage;
  std::array<char, 256> line{};
  while (fgets(line.data(), line.size(), file.get()) != nullptr) {
    const std::string_view text = line.data();
    const size_t at = text.find_first_of("0123456789");
    if (at == std::string_view::npos) continue;
    unsigned long number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (text.starts_with("VmData:")) usage.data = number << 10;
    if (text.starts_with("RssShmem:")) usage.shared = number << 10;
    if (text.starts_with("Threads:")) usage.threads = number;
  }
  return usage;
}

int until_time(std::chrono::steady_clock::time_point until) {
  const auto time =
      std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
  return time < 0 ? 0 : static_cast<int>(time);
}

/// Waits until the child ends or the time is over. Without a pidfd it waits one millisecond.
void wait_for_end(int handle, int time) {
  pollfd waiting{handle, POLLIN, 0};
  if (handle >= 0) {
    poll(&waiting, 1, time);
  } else {
    poll(nullptr, 0, std::min(time, 1));
  }
}

}  // namespace

ChildWatch::ChildWatch(pid_t child, const ChildLimits& limits, Clock::time_point deadline)
    : child_(child),
      handle_(static_cast<int>(syscall(SYS_pidfd_open, child, 0))),
      limits_(limits),
      until_(deadline) {}

int ChildWatch::pause() const {
  return std::min(until_time(until_), static_cast<int>(kBetweenLooks.count()));
}

bool ChildWatch::within_limits() {
  const bool late = until_time(until_) == 0;
  const ChildUsage usage = usage_of(child_);
  memory_full_ = (limits_.shared != 0 && usage.shared > limits_.shared) ||
                 (late && limits_.data != 0 && usage.data > limits_.data - limits_.data / 8);
  many_threads_ = limits_.threads != 0 && usage.threads > limits_.threads;
  return !late && !memory_full_ && !many_threads_;
}

bool ChildWatch::read_all(int pipe, std::string& text) {
  std::array<char, 4096> piece;
  while (text.size() < kLongestVerdict) {
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, pause());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return false;
    if (ready == 0) {
      if (!within_limits()) return false;
      continue;
    }
    const ssize_t count = ::read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  return true;
}

/// Whether the child ended. Does not reap it.
bool ChildWatch::has_ended() {
  siginfo_t state{};
  const int found = waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT);
  return found == 0 ? state.si_pid == child_ : errno == ECHILD;
}

void ChildWatch::read(int pipe, std::string& text) {
  if (!read_all(pipe, text)) return;
  while (!(in_time_ = has_ended())) {
    if (!within_limits()) return;
    wait_for_end(handle_.get(), pause());
  }
}

Ending ChildWatch::finish() {
  kill(-child_, SIGKILL);
  // Also directly, and through the pidfd because the program may have reaped the child already and
  // the system may have reused the number.
  if (handle_) {
    syscall(SYS_pidfd_send_signal, handle_.get(), SIGKILL, nullptr, 0);
  } else if (!has_ended()) {
    kill(child_, SIGKILL);
  }
  int status = 0;
  pid_t reaped = 0;
  const Clock::time_point latest = Clock::now() + kLongestDeath;
  while ((reaped = waitpid(child_, &status, WNOHANG)) == 0 || (reaped < 0 && errno == EINTR)) {
    const int time = until_time(latest);
    if (time == 0) break;
    wait_for_end(handle_.get(), time);
  }
  if (!in_time_) return {Ending::How::hung, 0, memory_full_, many_threads_};
  // The program may reap all children in a handler or ignore SIGCHLD; then the status is lost.
  if (reaped != child_) return {};
  if (WIFSIGNALED(status)) return {Ending::How::signalled, WTERMSIG(status), false};
  return {Ending::How::exited, WEXITSTATUS(status), false};
}

}  // namespace opmux::plugin
