#include "plugin/probe/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/probe/probe.hpp"
#include "plugin/probe/undumpable.hpp"
#include "plugin/trust/dependencies.hpp"

namespace opmux::plugin {
namespace {

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
  Files(int report, int given, int order, const std::vector<Descriptor>& libraries) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, report, protocol::kReportDescriptor);
    if (given >= 0) posix_spawn_file_actions_adddup2(&actions, given, protocol::kPluginDescriptor);
    if (order >= 0) posix_spawn_file_actions_adddup2(&actions, order, protocol::kOrderDescriptor);
    int number = protocol::kLibraryDescriptor;
    for (const Descriptor& library : libraries) {
      posix_spawn_file_actions_adddup2(&actions, library.get(), number++);
    }
    for (const int stream : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    }
  }
  ~Files() { posix_spawn_file_actions_destroy(&actions); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
};

/// Spawn attributes: no signal is blocked or ignored. The child leads a new session, because the
/// leader of a session can neither join another process group nor open the terminal of this one.
struct Attributes {
  posix_spawnattr_t all{};
  Attributes() {
    posix_spawnattr_init(&all);
    posix_spawnattr_setflags(&all,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
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

Result<pid_t> spawn(const ChildCommand& command, int report, int given, int order,
                    const std::vector<Descriptor>& libraries) {
  const Files files(report, given, order, libraries);
  const Attributes attributes;
  std::vector<std::string> words{command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  pid_t child = 0;
  const int failed = posix_spawn(&child, command.program.c_str(), &files.actions, &attributes.all,
                                 pointers(words).data(), pointers(command.environment).data());
  if (failed != 0) return cannot("start " + command.program, failed);
  return child;
}

/// Duplicates a descriptor above all descriptor numbers that the child uses.
int moved_up(int descriptor) {
  constexpr int kFree = protocol::kLibraryDescriptor + static_cast<int>(kMostLibraries);
  return descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, kFree);
}

/// Opens the file of a descriptor again. Where /proc is missing, duplicates the descriptor.
int opened_again(int descriptor) {
  if (descriptor < 0) return -1;
  const std::string path = base::concat("/proc/self/fd/", descriptor);
  const Descriptor again(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return moved_up(again ? again.get() : descriptor);
}

/// Both ends of a pipe; the end that the child gets is above the numbers that it uses.
struct ChildPipe {
  Descriptor mine, of_child;
};

Result<ChildPipe> child_pipe(bool child_reads) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot("make a pipe", errno);
  const Descriptor low(ends[child_reads ? 0 : 1]);
  ChildPipe made{Descriptor(ends[child_reads ? 1 : 0]), Descriptor(moved_up(low.get()))};
  if (!made.of_child) return cannot("copy a descriptor", errno);
  return made;
}

/// The end of a pipe from which the child reads the order.
Result<Descriptor> pipe_with(const std::string& order) {
  if (order.empty()) return Descriptor();
  Result<ChildPipe> pipe = child_pipe(true);
  if (!pipe) return pipe.error();
  if (!base::write_all(pipe->mine.get(), order)) return cannot("write to a pipe", errno);
  return std::move(pipe->of_child);
}

}  // namespace

Result<ChildReport> run_child(const ChildCommand& command, milliseconds deadline) {
  Result<ChildPipe> report = child_pipe(false);
  if (!report) return report.error();
  Result<Descriptor> order = pipe_with(command.order);
  if (!order) return order.error();
  const Descriptor given(opened_again(command.given));
  std::vector<Descriptor> libraries;
  for (const int library : command.libraries) {
    libraries.emplace_back(opened_again(library));
    if (!libraries.back()) return cannot("copy a descriptor", errno);
  }
  const ChildWatch::Clock::time_point until = ChildWatch::Clock::now() + deadline;
  const Undumpable out_of_reach;
  const Result<pid_t> child =
      spawn(command, report->of_child.get(), given.get(), order->get(), libraries);
  if (!child) return child.error();
  ChildWatch watch(*child, command.limits, until);
  report->of_child.reset();
  ChildReport made;
  watch.read(report->mine.get(), made.text);
  made.ending = watch.finish();
  return made;
}

}  // namespace opmux::plugin
