#include "plugin/probe/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/probe/probe.hpp"

namespace opmux::plugin {
namespace {

using Clock = std::chrono::steady_clock;
using base::Descriptor;
using std::chrono::milliseconds;

Status cannot(std::string_view what, int why) {
  return {Code::unavailable, "probe.spawn",
          base::concat("cannot ", what, ": ", std::generic_category().message(why))};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

/// File actions of the new process. The caller passes descriptors above the target numbers, because
/// dup2 of a descriptor onto itself would keep its close-on-exec flag.
struct Files {
  posix_spawn_file_actions_t actions{};
  Files(int report, int given) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, report, protocol::kReportDescriptor);
    if (given >= 0) posix_spawn_file_actions_adddup2(&actions, given, protocol::kPluginDescriptor);
    for (const int stream : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    }
  }
  ~Files() { posix_spawn_file_actions_destroy(&actions); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
};

/// Spawn attributes: no signal is blocked or ignored, and the child gets a new process group.
struct Attributes {
  posix_spawnattr_t all{};
  Attributes() {
    posix_spawnattr_init(&all);
    posix_spawnattr_setflags(
        &all, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&all, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&all, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&all, &signals);
  }
  ~Attributes() { posix_spawnattr_destroy(&all); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
};

Result<pid_t> spawn(const ChildCommand& command, int report, int given) {
  const Files files(report, given);
  const Attributes attributes;
  std::vector<std::string> words{command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  pid_t child = 0;
  const int failed = posix_spawn(&child, command.program.c_str(), &files.actions, &attributes.all,
                                 pointers(words).data(), pointers(command.environment).data());
  if (failed != 0) return cannot("start " + command.program, failed);
  return child;
}

int left(Clock::time_point until) {
  const auto time = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return time < 0 ? 0 : static_cast<int>(time);
}

/// Reads until the end of the stream, the size limit or the deadline. Returns false at the
/// deadline.
bool read_report(int from, Clock::time_point until, std::string& text) {
  std::array<char, 4096> piece;
  while (text.size() < kLongestVerdict) {
    pollfd waiting{from, POLLIN, 0};
    const int ready = poll(&waiting, 1, left(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(from, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  return true;
}

/// Whether the child ended before the deadline. Does not reap it.
bool ended_in_time(pid_t child, Clock::time_point until) {
  const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  while (true) {
    siginfo_t state{};
    const int found = waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT);
    if (found != 0 && errno == ECHILD) return true;
    if (found == 0 && state.si_pid == child) return true;
    const int time = left(until);
    if (time == 0) return false;
    pollfd waiting{handle.get(), POLLIN, 0};
    // Without a pidfd, poll once per millisecond.
    if (handle.get() >= 0) {
      poll(&waiting, 1, time);
    } else {
      poll(nullptr, 0, 1);
    }
  }
}

/// Private memory of a process in bytes; 0 if unknown.
unsigned long data_of(pid_t process) {
  const std::string path = base::concat("/proc/", process, "/status");
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "re"), fclose);
  if (file == nullptr) return 0;
  std::array<char, 256> line{};
  unsigned long kilobytes = 0;
  while (fgets(line.data(), line.size(), file.get()) != nullptr) {
    const std::string_view text = line.data();
    if (!text.starts_with("VmData:")) continue;
    const size_t at = text.find_first_of("0123456789");
    if (at != std::string_view::npos) {
      std::from_chars(text.data() + at, text.data() + text.size(), kilobytes);
    }
  }
  return kilobytes << 10;
}

Ending reap(pid_t child, bool in_time) {
  kill(-child, SIGKILL);
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = waitpid(child, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (!in_time) return {Ending::How::hung, 0, false};
  // The program may reap all children in a handler or ignore SIGCHLD; then the status is lost.
  if (reaped != child) return {};
  if (WIFSIGNALED(status)) return {Ending::How::signalled, WTERMSIG(status), false};
  return {Ending::How::exited, WEXITSTATUS(status), false};
}

/// Duplicates a descriptor above all descriptor numbers that the child uses.
int moved_up(int descriptor) {
  return descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, protocol::kPluginDescriptor + 1);
}

}  // namespace

Result<ChildReport> run_child(const ChildCommand& command, milliseconds deadline) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot("make a pipe", errno);
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  Descriptor high(moved_up(to.get())), given(moved_up(command.given));
  if (high.get() < 0) return cannot("copy a descriptor", errno);
  const Clock::time_point until = Clock::now() + deadline;
  const Result<pid_t> child = spawn(command, high.get(), given.get());
  if (!child) return child.error();
  to.reset();
  high.reset();
  ChildReport report;
  const bool in_time = read_report(from.get(), until, report.text) && ended_in_time(*child, until);
  const bool full = !in_time && command.most_data != 0 &&
                    data_of(*child) > command.most_data - command.most_data / 8;
  report.ending = reap(*child, in_time);
  report.ending.memory_full = full;
  return report;
}

}  // namespace opmux::plugin
