// Every allocation of every function of the API fails once: the n-th allocation of a scenario, for
// n = 1, 2, ... until the scenario ends without reaching it. Each n is tried in a separate
// process, so that a crash, a hang or a leak is counted and the loop goes on.
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "failing_memory.hpp"
#include "private_folder.hpp"
#include "scenario.hpp"

namespace opmux::test {
namespace {

/// How a scenario ended whose n-th allocation failed: the exit code of its process.
using Ending = int;
constexpr Ending kOk = 0;          ///< `resource` or success, the runtime is usable, nothing leaked
constexpr Ending kNotReached = 1;  ///< the scenario makes fewer allocations
constexpr Ending kAbort = 2;
constexpr Ending kCrash = 3;
constexpr Ending kHang = 4;
constexpr Ending kLeak = 5;
constexpr Ending kWrongResult = 6;    ///< neither `resource` nor the usual result, or no text
constexpr Ending kUnusable = 7;       ///< a call after the failure gives another result
constexpr Ending kNotRepeatable = 8;  ///< the scenario fails when it runs again with enough memory
constexpr Ending kNotPrepared = 9;    ///< a step before the failure did not work
constexpr const char* kNames[] = {
    "ok",   "not reached",  "abort",    "crash",          "hang",
    "leak", "wrong result", "unusable", "not repeatable", "not prepared"};

/// How long a process may take.
constexpr unsigned kSeconds = 20;

/// The failure of one run.
struct Injection {
  uint64_t n = 0;  ///< 0: none
  Failing failing = Failing::once;
};

struct CycleResult {
  Ending ending = kOk;
  int32_t outcome = OPMUX_OK;
};

/// True if the text and the reason of a failure are present.
bool explained(int32_t outcome, const opmux_error& error) {
  return error.outcome == outcome && error.text_size != 0 && error.code.size != 0;
}

/// One life of a runtime: prepares the scenario, runs it with the failure, runs it again without.
CycleResult live_once(const Scenario& scenario, const std::string& folder, Injection injection) {
  World world(folder);
  if (!scenario.creates) world.start();
  if (scenario.prepare != nullptr) scenario.prepare(world);
  std::array<char, 512> text{};
  opmux_error error = opmux_error_of(text.data(), text.size());
  if (injection.n != 0) fail_allocation(injection.n, injection.failing);
  const int32_t outcome = scenario.run(world, &error);
  const bool failed = stop_failing() != 0;
  if (outcome != scenario.expected) {
    if (!failed) return {kNotPrepared, outcome};
    if (outcome != OPMUX_RESOURCE || !explained(outcome, error)) return {kWrongResult, outcome};
  }
  if (world.runtime != nullptr && !usable(world)) return {kUnusable, outcome};
  if (failed && outcome != scenario.expected) {
    if (scenario.run(world, &error) != scenario.expected) return {kNotRepeatable, error.outcome};
    if (world.runtime != nullptr && !usable(world)) return {kUnusable, outcome};
  }
  world.destroy_runtime();
  return {failed || injection.n == 0 ? kOk : kNotReached, outcome};
}

/// live_once() on a new thread, so that the state of the thread is created and freed too.
CycleResult live_in_thread(const Scenario& scenario, const std::string& folder,
                           Injection injection) {
  CycleResult result;
  std::thread([&] { result = live_once(scenario, folder, injection); }).join();
  return result;
}

/// The body of a child process. The first life finds the process without any state of the library.
/// The later ones are alike, so that more blocks stay in use after a failure only if there is a
/// leak. Sanitized programs do not count blocks.
CycleResult child(const Scenario& scenario, const std::string& folder, Injection injection) {
  const CycleResult first = live_in_thread(scenario, folder, injection);
  if (first.ending != kOk || injection.n == 0) return first;
  const CycleResult usual = live_in_thread(scenario, folder, {});
  if (usual.ending != kOk) return usual;
  if (memory_is_sanitized()) return first;
  live_in_thread(scenario, folder, injection);
  live_in_thread(scenario, folder, {});
  const int64_t before = blocks_in_use();
  live_in_thread(scenario, folder, {});
  live_in_thread(scenario, folder, {});
  const int64_t usual_growth = blocks_in_use() - before;
  live_in_thread(scenario, folder, injection);
  live_in_thread(scenario, folder, {});
  const int64_t growth = blocks_in_use() - before - usual_growth;
  return {growth > usual_growth + scenario.kept ? kLeak : kOk, first.outcome};
}

/// Runs a scenario with a failure in a forked process.
class Trial {
 public:
  Trial(const Scenario& scenario, Injection injection)
      : scenario_(scenario), injection_(injection) {
    shared_ = static_cast<CycleResult*>(mmap(nullptr, sizeof(CycleResult), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Trial() { munmap(shared_, sizeof(CycleResult)); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Ending run() {
    const PrivateFolder folder;
    const std::string path = folder.path().string();
    const pid_t process = fork();
    if (process == 0) {
      if (!shows_output()) (void)!freopen("/dev/null", "w", stderr);
      for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGALRM}) std::signal(signal, &show_place);
      alarm(kSeconds);
      *shared_ = child(scenario_, path, injection_);
      if (shared_->ending > kNotReached) show_place(0);
      _exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? shared_->ending : kNotPrepared;
    if (WTERMSIG(status) == SIGABRT) return kAbort;
    return WTERMSIG(status) == SIGALRM ? kHang : kCrash;
  }
  int32_t outcome() const { return shared_->outcome; }

 private:
  static bool shows_output() { return std::getenv("OOM_SHOW") != nullptr; }
  /// Shows which allocation failed, and ends the process as the signal would.
  static void show_place(int signal) {
    if (shows_output()) print_failed_allocation();
    if (signal == 0) return;
    std::signal(signal, SIG_DFL);
    raise(signal);
  }

  const Scenario& scenario_;
  const Injection injection_;
  CycleResult* shared_;
};

/// The endings of all trials of a scenario.
struct Tally {
  std::array<uint64_t, std::size(kNames)> endings{};
  uint64_t injections = 0, refused = 0;
  std::string first_bad;

  uint64_t bad() const { return injections - endings[kOk]; }
  void add(const Tally& other) {
    for (size_t i = 0; i < endings.size(); ++i) endings[i] += other.endings[i];
    injections += other.injections;
    refused += other.refused;
  }
};

void print(const char* name, const Tally& tally) {
  printf("%-28s %6lu", name, static_cast<unsigned long>(tally.injections));
  for (const Ending ending : {kOk, kAbort, kCrash, kHang, kLeak}) {
    printf(" %6lu", static_cast<unsigned long>(tally.endings[ending]));
  }
  printf(" %6lu  %s\n",
         static_cast<unsigned long>(tally.endings[kWrongResult] + tally.endings[kUnusable] +
                                    tally.endings[kNotRepeatable] + tally.endings[kNotPrepared]),
         tally.first_bad.c_str());
  fflush(stdout);
}

void print_heading() {
  printf("%-28s %6s %6s %6s %6s %6s %6s %6s\n", "scenario", "all", "ok", "abort", "crash", "hang",
         "leak", "other");
}

/// Fails the allocations 1, 1 + stride, ... of a scenario.
Tally try_scenario(const Scenario& scenario, Failing failing, uint64_t stride) {
  constexpr uint64_t kMost = 100'000;
  Tally tally;
  for (uint64_t n = 1; n < kMost; n += stride) {
    Trial trial(scenario, {n, failing});
    const Ending ending = trial.run();
    if (ending == kNotReached) break;
    ++tally.injections;
    ++tally.endings[ending];
    tally.refused += trial.outcome() == OPMUX_RESOURCE ? 1 : 0;
    if (ending == kOk) continue;
    if (tally.first_bad.empty()) {
      tally.first_bad = std::string(kNames[ending]) + " at " + std::to_string(n) + ", outcome " +
                        std::to_string(trial.outcome());
    }
    if (ending == kNotPrepared) break;
  }
  return tally;
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  const char* const only = std::getenv("OOM_ONLY");
  for (const auto& part : {c_scenarios(), policy_scenarios(), cpp_scenarios()}) {
    for (const Scenario& scenario : part) {
      if (only == nullptr || strcmp(only, scenario.name) == 0) all.push_back(scenario);
    }
  }
  return all;
}

Tally try_all(uint64_t stride) {
  Tally sum;
  print_heading();
  for (const Scenario& scenario : all_scenarios()) {
    Tally own;
    for (const Failing failing : {Failing::once, Failing::lasting}) {
      Tally tally = try_scenario(scenario, failing, std::max(stride, scenario.step));
      own.add(tally);
      if (own.first_bad.empty() && !tally.first_bad.empty()) {
        own.first_bad = (failing == Failing::once ? "once: " : "lasting: ") + tally.first_bad;
      }
    }
    print(scenario.name, own);
    EXPECT_EQ(own.bad(), 0u) << scenario.name << ": " << own.first_bad;
    sum.add(own);
  }
  print("all", sum);
  printf("%lu injections ended with `resource`\n", static_cast<unsigned long>(sum.refused));
  return sum;
}

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Oom, scenarios_succeed_with_enough_memory) {
  for (const Scenario& scenario : all_scenarios()) {
    Trial trial(scenario, {});
    EXPECT_EQ(trial.run(), kOk) << scenario.name << ", outcome " << trial.outcome();
  }
}

TEST(Oom, some_allocations) {
  // A prime, so that the allocations of a loop in the library are met at different places.
  const Tally sum = try_all(number_in("OOM_STRIDE", memory_is_sanitized() ? 2399 : 613));
  EXPECT_GE(sum.injections, all_scenarios().size());
}

// One allocation of one scenario, to find the cause of a failure: OOM_ONLY=NAME OOM_N=NUMBER
// OOM_LASTING=0 OOM_SHOW=1 oom_test --gtest_also_run_disabled_tests --gtest_filter=*one_allocation
TEST(Oom, DISABLED_one_allocation) {
  const auto failing = number_in("OOM_LASTING", 0) == 0 ? Failing::once : Failing::lasting;
  for (const Scenario& scenario : all_scenarios()) {
    Trial trial(scenario, {number_in("OOM_N", 1), failing});
    EXPECT_EQ(kNames[trial.run()], kNames[kOk]) << scenario.name << ", outcome " << trial.outcome();
  }
}

TEST(Oom, DISABLED_every_allocation) {
  const Tally sum = try_all(1);
  if (std::getenv("OOM_ONLY") == nullptr) {
    EXPECT_GE(sum.injections, 3000u);
  }
}

}  // namespace
}  // namespace opmux::test
