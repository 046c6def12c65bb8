#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

#include "crash/journal_file.hpp"
#include "forked.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

constexpr int64_t kTroubledNow = 1'700'000'000, kTroubledYear = 365 * 24 * 3600;

/// A runtime whose journal is in an unusable folder, and the events that it logged.
struct Troubled {
  explicit Troubled(const std::string& folder, CrashJournal journal = CrashJournal::with_handler,
                    int64_t since = kTroubledNow)
      : now(since) {
    Options options{.environment = {{}}, .backends = false, .state = {folder, journal}};
    options.sink = [this](const Event& event) { codes.push_back(event.code); };
    options.sources.utc = [this] {
      return std::chrono::sys_seconds(std::chrono::seconds(now.load()));
    };
    made.emplace(Runtime::create(options));
  }
  Runtime& runtime() { return **made; }
  bool serves() {
    float x[4] = {1, 1, 1, 1}, y[4] = {};
    const TensorView in(x, f32, {4}), out(y, f32, {4});
    return runtime().call("softmax", out, in).ok() && y[3] == 0.25f;
  }
  long told(std::string_view code) const { return std::ranges::count(codes, code); }

  std::vector<std::string> codes;
  std::atomic<int64_t> now;
  std::optional<Result<Runtime>> made;
};

TEST(CrashJournalOfTheEnvironment, is_used_unless_the_program_configures_one) {
  const auto handler_of = [](const char* word, CrashJournal own) {
    const TemporaryFolder folder;
    const Options options{.environment = {{{"OPMUX_CRASH_JOURNAL", word}}},
                          .backends = false,
                          .state = {folder.path(), own}};
    const Runtime runtime = Runtime::create(options).value();
    const CrashJournalState state = runtime.health().crash_journal();
    return std::pair(state.on, state.handler);
  };
  EXPECT_EQ(handler_of("with_handler", CrashJournal::off), std::pair(true, true));
  EXPECT_EQ(handler_of("on", CrashJournal::off), std::pair(true, false));
  EXPECT_EQ(handler_of("off", CrashJournal::on), std::pair(true, false));
  EXPECT_EQ(handler_of("on", CrashJournal::with_handler), std::pair(true, true));
  EXPECT_EQ(handler_of("off", CrashJournal::off), std::pair(false, false));
}

/// Acts like libraries that print a stack trace: re-raises the signal with the default action.
void print_and_fall(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

TEST(CrashJournalTrouble, a_previous_handler_that_reraises_does_not_hide_the_fault) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, print_and_fall);
    const Options options{.environment = {{}},
                          .backends = false,
                          .state = {folder.path(), CrashJournal::with_handler}};
    Runtime runtime = Runtime::create(options).value();
    const auto fall = [](CallFrame&) {
      volatile int* const nowhere = nullptr;
      *nowhere = 1;
      return Outcome::ok;
    };
    const Registration held =
        runtime.implement({.id = "softmax/falls.one", .kind = Kind::default_, .run = fall}).value();
    float x[4] = {}, y[4] = {};
    (void)runtime.call("softmax", TensorView(y, f32, {4}), TensorView(x, f32, {4}));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  Troubled next(folder.path());
  ASSERT_EQ(next.runtime().health().quarantine().entries.size(), 1u);
  EXPECT_EQ(next.runtime().health().quarantine().entries[0].implementation, "softmax/falls.one");
}

TEST(CrashJournalTrouble, an_uncreatable_folder_is_logged_once_and_calls_continue) {
  const TemporaryFolder folder;
  write_file(folder.at("file"), "no folder");
  Troubled troubled(folder.at("file"));
  EXPECT_TRUE(troubled.serves());
  EXPECT_FALSE(troubled.runtime().health().crash_journal().on);
  EXPECT_FALSE(troubled.runtime().health().crash_journal().problem.empty());
  EXPECT_EQ(troubled.told("journal.off"), 1);
}

TEST(CrashJournalTrouble, a_folder_writable_by_others_is_not_used) {
  const TemporaryFolder folder;
  ::mkdir(folder.at("run").c_str(), 0777);
  ::chmod(folder.at("run").c_str(), 0777);
  Troubled troubled(folder.path());
  EXPECT_TRUE(troubled.serves());
  EXPECT_EQ(troubled.told("journal.off"), 1);
}

TEST(CrashJournalTrouble, a_read_only_folder_is_logged_once_and_calls_continue) {
  const TemporaryFolder folder;
  ::mkdir(folder.at("run").c_str(), 0700);
  // Root can write to read-only folders, so a folder takes the place of the lock file.
  ::mkdir(folder.at("run/lock").c_str(), 0500);
  ::chmod(folder.at("run").c_str(), 0500);
  {
    Troubled troubled(folder.path());
    EXPECT_TRUE(troubled.serves());
    EXPECT_EQ(troubled.told("journal.off"), 1);
    EXPECT_FALSE(troubled.runtime().health().crash_journal().on);
  }
  ::chmod(folder.at("run").c_str(), 0700);
}

TEST(CrashJournalTrouble, a_full_disk_is_logged_once_and_calls_continue) {
  const TemporaryFolder folder;
  EXPECT_TRUE(true_in_forked_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Troubled troubled(folder.path());
    return troubled.serves() && troubled.told("journal.off") == 1 &&
           !troubled.runtime().health().crash_journal().on;
  }));
}

TEST(CrashJournalTrouble, a_full_name_table_is_counted_and_logged_once) {
  const TemporaryFolder folder;
  EXPECT_TRUE(true_in_forked_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{crash::kJournalMapped + 100, crash::kJournalMapped + 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Troubled troubled(folder.path());
    const CrashJournalState state = troubled.runtime().health().crash_journal();
    return troubled.serves() && state.on && state.unnoted > 0 &&
           troubled.told("journal.names") == 1;
  }));
}

TEST(CrashJournalTrouble, journals_of_an_older_version_and_damaged_ones_are_counted_and_skipped) {
  const TemporaryFolder folder;
  ::mkdir(folder.at("run").c_str(), 0700);
  crash::JournalHeader header{};
  crash::kJournalMagic.copy(header.magic, sizeof header.magic);
  header.version = 0;
  header.check = crash::check_of(header);
  write_file(folder.at("run/journal-1"), {reinterpret_cast<const char*>(&header), sizeof header});
  write_file(folder.at("run/journal-2"), "OPMUX");
  Troubled troubled(folder.path());
  EXPECT_TRUE(troubled.serves());
  const CrashJournalState state = troubled.runtime().health().crash_journal();
  EXPECT_TRUE(state.on);
  EXPECT_EQ(state.other_version, 1u);
  EXPECT_EQ(state.damaged, 1u);
  EXPECT_EQ(troubled.told("journal.version"), 1);
  EXPECT_EQ(troubled.told("journal.damaged"), 1);
}

TEST(CrashJournalTrouble, a_clock_jump_of_a_year_does_not_affect_calls) {
  for (const int64_t jump : {kTroubledYear, -kTroubledYear}) {
    const TemporaryFolder folder;
    Troubled first(folder.path());
    EXPECT_TRUE(first.serves());
    first.now += jump;
    EXPECT_TRUE(first.serves());
    EXPECT_TRUE(first.runtime().policy().load("opmux: 1\n").ok());
    EXPECT_TRUE(first.serves());
    Troubled second(folder.path(), CrashJournal::with_handler, kTroubledNow + jump);
    EXPECT_TRUE(second.serves());
    EXPECT_TRUE(second.runtime().health().crash_journal().on);
    EXPECT_EQ(second.runtime().health().quarantine().entries.size(), 0u)
        << "the first process is still running";
    for (const Troubled* one : {&first, &second})
      EXPECT_EQ(one->told("journal.off") + one->told("journal.damaged"), 0);
  }
}

TEST(CrashJournalTrouble, a_journal_truncated_while_in_use_does_no_harm) {
  const TemporaryFolder folder;
  EXPECT_TRUE(true_in_forked_child([&] {
    Troubled troubled(folder.path());
    if (!troubled.serves()) return false;
    const std::string path = troubled.runtime().health().crash_journal().path;
    if (path.empty() || ::truncate(path.c_str(), 0) != 0) return false;
    return troubled.serves() && troubled.serves();
  }));
}

TEST(CrashJournalTrouble, a_forked_child_has_a_separate_journal) {
  const TemporaryFolder folder;
  Troubled troubled(folder.path(), CrashJournal::on);
  ASSERT_TRUE(troubled.serves());
  const std::string parents = troubled.runtime().health().crash_journal().path;
  EXPECT_TRUE(true_in_forked_child([&] {
    if (!troubled.runtime().health().crash_journal().path.empty()) return false;
    float x[8] = {}, y[8] = {};
    // A new shape takes the slow path.
    const TensorView in(x, f32, {2, 2, 2}), out(y, f32, {2, 2, 2});
    const bool called = troubled.runtime().call("softmax", out, in).ok();
    const std::string own = troubled.runtime().health().crash_journal().path;
    return called && !own.empty() && own != parents && ::access(own.c_str(), F_OK) == 0;
  }));
  EXPECT_EQ(troubled.runtime().health().crash_journal().path, parents);
  EXPECT_EQ(::access(parents.c_str(), F_OK), 0);
}

TEST(CrashJournalTrouble, the_journal_is_removed_with_the_last_runtime_that_uses_it) {
  const TemporaryFolder folder;
  std::string path;
  {
    Troubled first(folder.path(), CrashJournal::on);
    {
      Troubled second(folder.path());
      path = second.runtime().health().crash_journal().path;
    }
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(CrashJournalTrouble, previous_handlers_are_called_and_restored) {
  static std::atomic<int> seen{0};
  struct sigaction mine{}, before{}, after{};
  mine.sa_handler = [](int) { seen.fetch_add(1); };
  ::sigaction(SIGFPE, &mine, &before);
  const TemporaryFolder folder;
  {
    Troubled troubled(folder.path());
    ::raise(SIGFPE);
    EXPECT_EQ(seen.load(), 1);
  }
  ::sigaction(SIGFPE, &before, &after);
  EXPECT_EQ(after.sa_handler, mine.sa_handler);
}

TEST(CrashJournalTrouble, is_off_by_default) {
  const TemporaryFolder folder;
  Troubled troubled(folder.path(), CrashJournal::off);
  EXPECT_TRUE(troubled.serves());
  EXPECT_FALSE(troubled.runtime().health().crash_journal().on);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace opmux::test
