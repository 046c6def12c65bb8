// Every system call of the life of a runtime fails once: the n-th call of a function, for n = 1, 2,
// ... until the life ends without reaching it. The runtime has a policy file, a state folder with
// crash journal and status file, a folder for recorded calls and, in the second form, a plugin that
// is probed.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "failing_calls.hpp"
#include "kernels.hpp"
#include "private_folder.hpp"
#include "scenario.hpp"

namespace opmux::test {
namespace {

/// How a life ended in which a system call failed: the exit code of its process.
using Ending = int;
constexpr Ending kServed = 0;  ///< all calls computed the right numbers
constexpr Ending kRefused =
    1;  ///< the runtime was not created, and the error has a reason and a text
constexpr Ending kNotReached = 2;  ///< the life makes fewer calls of the function
constexpr Ending kAbort = 3;
constexpr Ending kCrash = 4;
constexpr Ending kHang = 5;
constexpr Ending kNoText = 6;       ///< refused without a reason or a text
constexpr Ending kWrong = 7;        ///< a call failed or computed other numbers
constexpr Ending kDescriptors = 8;  ///< more open files after the life than before
constexpr Ending kNotPrepared = 9;
constexpr const char* kNames[] = {"served",      "refused",     "not reached", "abort",
                                  "crash",       "hang",        "no text",     "wrong",
                                  "descriptors", "not prepared"};
constexpr unsigned kSeconds = 30;

void write_text(const std::string& path, const std::string& text) {
  const Undisturbed undisturbed;
  std::ofstream(path) << text;
  std::filesystem::permissions(path, std::filesystem::perms(0600));
}

int open_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.exists() ? 1 : 0;
  }
  return count;
}

/// Creates the runtime of a world with everything that uses files.
int32_t create(World& world, bool with_plugin, opmux_error* error) {
  opmux_source_options sources{};
  sources.struct_size = sizeof sources;
  sources.flags = OPMUX_SOURCE_NO_THREAD;
  sources.mode = OPMUX_STR("hot_reload");
  sources.config = opmux_str_of(world.config.c_str());
  opmux_state_options state{};
  state.struct_size = sizeof state;
  state.crash_journal = OPMUX_CRASH_JOURNAL_ON;
  state.folder = opmux_str_of(world.state.c_str());
  state.state_page = 1;
  opmux_record_options record{};
  record.struct_size = sizeof record;
  record.flags = OPMUX_RECORD_INPUTS;
  record.folder = opmux_str_of(world.record.c_str());
  const opmux_str folder = opmux_str_of(world.plugins.c_str());
  opmux_plugin_options plugins{};
  plugins.struct_size = sizeof plugins;
  plugins.flags = OPMUX_PLUGINS_SEALED;
  plugins.folders = {&folder, 1};
  opmux_options options{};
  options.struct_size = sizeof options;
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  const opmux_variable none{};
  options.environment = &none;
  options.sources = &sources;
  options.state = &state;
  options.record = &record;
  if (with_plugin) options.plugins = &plugins;
  return opmux_runtime_create(&options, &world.runtime, error);
}

/// Calls, a changed policy file, maintenance, and the reports that read or write files.
Ending use(World& world) {
  if (opmux_operator_get(world.runtime, OPMUX_STR("silu_and_mul"), &world.op, nullptr) != OPMUX_OK)
    return kWrong;
  if (!usable(world)) return kWrong;
  write_text(world.config, "opmux: 1\nrules: [{op: softmax, prefer: [reference]}]\n");
  for (int i = 0; i < 3; ++i) {
    world.now_ns += 2'000'000'000;
    opmux_tick(world.runtime, world.now_ns, nullptr);
  }
  // A call that fails is recorded, and falls back to the reference.
  if (implement_silu(world.runtime, Behaviour::fails, &world.registration, nullptr) == OPMUX_OK) {
    if (!usable(world)) return kWrong;
    opmux_withdraw(std::exchange(world.registration, nullptr), nullptr);
  }
  opmux_runtime_warm_up(world.runtime, nullptr);
  opmux_list_plugins(world.runtime, world.text.data(), world.text.size(), &world.size, nullptr);
  opmux_list_quarantine(world.runtime, world.text.data(), world.text.size(), &world.size, nullptr);
  uint64_t cleared = 0;
  opmux_clear_quarantine(world.runtime, OPMUX_STR(""), &cleared, nullptr);
  opmux_process_states(opmux_str_of(world.state.c_str()), world.text.data(), world.text.size(),
                       &world.size, nullptr);
  return usable(world) ? kServed : kWrong;
}

Ending live(const std::string& folder, bool with_plugin, const SystemCall* call, uint64_t n,
            bool lasting) {
  World world(folder);
  std::array<char, 512> text{};
  opmux_error error = opmux_error_of(text.data(), text.size());
  if (call != nullptr) fail_system_call(*call, n, lasting);
  const int32_t outcome = create(world, with_plugin, &error);
  const Ending ending = outcome == OPMUX_OK ? use(world) : kRefused;
  world.destroy_runtime();
  const bool failed = allow_system_calls() != 0;
  if (ending == kRefused && (error.text_size == 0 || error.code.size == 0)) return kNoText;
  if (ending == kRefused && !failed) return kNotPrepared;
  return failed || call == nullptr ? ending : kNotReached;
}

/// The body of a child process: the life with the failure, and one without.
Ending child(const std::string& folder, bool with_plugin, const SystemCall* call, uint64_t n,
             bool lasting) {
  write_text(folder + "/policy.yaml", "opmux: 1\nrules: []\n");
  std::filesystem::create_directories(folder + "/state");
  std::filesystem::permissions(folder + "/state", std::filesystem::perms(0700));
  const int before = open_files();
  Ending ending = kNotPrepared;
  std::thread([&] { ending = live(folder, with_plugin, call, n, lasting); }).join();
  if (ending > kRefused) return ending;
  // The descriptor of a loaded plugin stays open until the process ends.
  if (open_files() > before + (with_plugin ? 1 : 0)) return kDescriptors;
  Ending after = kNotPrepared;
  std::thread([&] { after = live(folder, with_plugin, nullptr, 0, false); }).join();
  return after == kServed ? ending : kNotPrepared;
}

Ending try_once(bool with_plugin, const SystemCall* call, uint64_t n, bool lasting) {
  const PrivateFolder folder;
  const std::string path = folder.path().string();
  if (with_plugin) {
    std::filesystem::create_directories(path + "/plugins");
    std::filesystem::copy_file(OOM_PLUGIN, path + "/plugins/minimal.so");
  }
  const pid_t process = fork();
  if (process == 0) {
    if (std::getenv("OOM_SHOW") == nullptr) (void)!freopen("/dev/null", "w", stderr);
    alarm(kSeconds);
    _exit(child(path, with_plugin, call, n, lasting));
  }
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFEXITED(status)) return static_cast<Ending>(WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGABRT) return kAbort;
  return WTERMSIG(status) == SIGALRM ? kHang : kCrash;
}

struct Tally {
  std::array<uint64_t, std::size(kNames)> endings{};
  uint64_t all = 0;
  std::string first_bad;
  uint64_t bad() const { return all - endings[kServed] - endings[kRefused]; }
};

Tally try_call(bool with_plugin, const SystemCall& call, uint64_t stride, uint64_t most) {
  Tally tally;
  for (const bool lasting : {false, true}) {
    for (uint64_t n = 1; n <= most; n += stride) {
      const Ending ending = try_once(with_plugin, &call, n, lasting);
      if (ending == kNotReached) break;
      ++tally.all;
      ++tally.endings[ending];
      if (ending > kRefused && tally.first_bad.empty()) {
        tally.first_bad =
            std::string(kNames[ending]) + " at " + std::to_string(n) + (lasting ? ", lasting" : "");
      }
    }
  }
  return tally;
}

void print(const char* name, const Tally& tally) {
  printf("%-22s %5lu %7lu %8lu %6lu %6lu %6lu %6lu  %s\n", name,
         static_cast<unsigned long>(tally.all), static_cast<unsigned long>(tally.endings[kServed]),
         static_cast<unsigned long>(tally.endings[kRefused]),
         static_cast<unsigned long>(tally.endings[kAbort]),
         static_cast<unsigned long>(tally.endings[kCrash]),
         static_cast<unsigned long>(tally.endings[kHang]),
         static_cast<unsigned long>(tally.bad() - tally.endings[kAbort] - tally.endings[kCrash] -
                                    tally.endings[kHang]),
         tally.first_bad.c_str());
  fflush(stdout);
}

/// Fails calls of every function. Returns the number of functions that failed at least once.
size_t try_all(bool with_plugin, uint64_t stride, uint64_t most) {
  printf("%-22s %5s %7s %8s %6s %6s %6s %6s\n", "function", "all", "served", "refused", "abort",
         "crash", "hang", "other");
  size_t functions = 0;
  Tally sum;
  const char* const only = std::getenv("OOM_ONLY");
  for (const SystemCall& call : system_calls()) {
    if (only != nullptr && strcmp(only, call.name) != 0) continue;
    const Tally tally = try_call(with_plugin, call, stride, most);
    print(call.name, tally);
    EXPECT_EQ(tally.bad(), 0u) << call.name << ": " << tally.first_bad;
    functions += tally.all != 0 ? 1 : 0;
    sum.all += tally.all;
    for (size_t i = 0; i < sum.endings.size(); ++i) sum.endings[i] += tally.endings[i];
  }
  print("all", sum);
  printf("%zu functions failed\n", functions);
  return functions;
}

TEST(FailedSystemCalls, a_life_without_failures_serves) {
  EXPECT_EQ(kNames[try_once(false, nullptr, 0, false)], kNames[kServed]);
  EXPECT_EQ(kNames[try_once(true, nullptr, 0, false)], kNames[kServed]);
}

TEST(FailedSystemCalls, some_calls) { EXPECT_GE(try_all(false, 5, 40), 18u); }

TEST(FailedSystemCalls, DISABLED_every_call) { EXPECT_GE(try_all(false, 1, 2000), 20u); }

TEST(FailedSystemCalls, DISABLED_every_call_with_a_plugin) {
  EXPECT_GE(try_all(true, 1, 500), 20u);
}

}  // namespace
}  // namespace opmux::test
