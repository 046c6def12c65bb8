#include "probe/process_state.hpp"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

namespace opmux::probe {
namespace {

constexpr int kSignals = 65;
constexpr int kRestorer = 0x04000000;  // SA_RESTORER, which the C library adds to the flags

/// The entries of a /proc folder whose names are numbers.
std::vector<int> numbers_in(const char* folder, int* own = nullptr) {
  std::vector<int> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder), closedir);
  if (open == nullptr) return all;
  while (const dirent* entry = readdir(open.get())) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') all.push_back(std::atoi(entry->d_name));
  }
  if (own != nullptr) *own = dirfd(open.get());
  return all;
}

std::map<int, std::pair<dev_t, ino_t>> open_files() {
  int own = -1;
  std::map<int, std::pair<dev_t, ino_t>> files;
  for (const int number : numbers_in("/proc/self/fd", &own)) {
    struct stat file{};
    if (number == own || fstat(number, &file) != 0) continue;
    files[number] = {file.st_dev, file.st_ino};
  }
  return files;
}

std::array<uint32_t, 3> floating_point() {
  std::array<uint32_t, 3> modes{static_cast<uint32_t>(fegetround()),
                                static_cast<uint32_t>(fegetexcept()), 0};
#if defined(__x86_64__)
  // Flags of exceptions that occurred, which every computation changes.
  constexpr uint32_t kSticky = 0x3f;
  fenv_t all{};
  fegetenv(&all);
  modes[1] = all.__control_word;
  modes[2] = all.__mxcsr & ~kSticky;
#endif
  return modes;
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) all.emplace_back(*at);
  std::sort(all.begin(), all.end());
  return all;
}

void look_at_signals(ProcessState& state) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int i = 1; i < kSignals; ++i) {
    state.blocked[static_cast<size_t>(i)] = sigismember(&mask, i) == 1;
    struct sigaction action{};
    if (sigaction(i, nullptr, &action) != 0) continue;
    state.handlers[static_cast<size_t>(i)] = {reinterpret_cast<const void*>(action.sa_handler),
                                              action.sa_flags & ~kRestorer};
  }
}

void look_at_limits(ProcessState& state) {
  for (int i = 0; i < RLIM_NLIMITS; ++i) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource_t>(i), &limit);
    state.limits[static_cast<size_t>(i)] = {limit.rlim_cur, limit.rlim_max};
  }
  for (const int which : {0, 1, 2}) {
    itimerval timer{};
    getitimer(static_cast<__itimer_which_t>(which), &timer);
    state.timers[static_cast<size_t>(which)] =
        timer.it_value.tv_sec * 1'000'000 + timer.it_value.tv_usec;
  }
}

bool lost_files(const ProcessState& before, const ProcessState& after) {
  return std::any_of(before.files.begin(), before.files.end(), [&](const auto& file) {
    const auto now = after.files.find(file.first);
    return now == after.files.end() || now->second != file.second;
  });
}

bool set_timers(const ProcessState& before, const ProcessState& after) {
  for (size_t i = 0; i < before.timers.size(); ++i) {
    if (before.timers[i] == 0 && after.timers[i] != 0) return true;
  }
  return false;
}

}  // namespace

ProcessState look() {
  ProcessState state;
  std::error_code unknown;
  state.files = open_files();
  state.folder = std::filesystem::current_path(unknown).string();
  state.file_mask = umask(0);
  umask(state.file_mask);
  state.environment = environment();
  const char* locale = std::setlocale(LC_ALL, nullptr);
  state.locale = locale != nullptr ? locale : "";
  state.floating_point = floating_point();
  look_at_signals(state);
  state.on_terminate = std::get_terminate();
  state.on_no_memory = std::get_new_handler();
  look_at_limits(state);
  state.threads = numbers_in("/proc/self/task").size();
  return state;
}

std::vector<Difference> differences(const ProcessState& before, const ProcessState& after) {
  std::vector<Difference> all;
  const auto unless = [&](bool same, std::string_view code, std::string text) {
    if (!same) all.push_back({code, std::move(text)});
  };
  unless(!lost_files(before, after), "probe.files",
         "it closed or replaced file descriptors of the process");
  unless(before.folder == after.folder, "probe.folder", "it changed the working directory");
  unless(before.file_mask == after.file_mask, "probe.umask", "it changed the umask");
  unless(before.environment == after.environment, "probe.environment",
         "it changed the environment");
  unless(before.locale == after.locale, "probe.locale", "it changed the locale");
  unless(before.floating_point == after.floating_point, "probe.floating_point",
         "it changed rounding, trapping or flushing to zero; a library linked with -ffast-math or "
         "-Ofast does that");
  unless(before.blocked == after.blocked, "probe.signal_mask",
         "it changed which signals are blocked");
  unless(before.handlers == after.handlers && before.on_terminate == after.on_terminate &&
             before.on_no_memory == after.on_no_memory,
         "probe.handlers", "it changed a signal handler, the terminate handler or the new handler");
  unless(!set_timers(before, after), "probe.timers",
         "it set a timer that will interrupt the process");
  unless(before.limits == after.limits, "probe.limits", "it changed the limits of the process");
  unless(after.threads <= before.threads, "probe.threads", "it left a thread running");
  return all;
}

}  // namespace opmux::probe
