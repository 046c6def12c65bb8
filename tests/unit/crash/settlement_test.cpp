#include "crash/settlement.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "crash/journal_file.hpp"
#include "temporary_folder.hpp"

namespace opmux::crash {
namespace {

using test::TemporaryFolder;
using test::write_file;

constexpr int64_t kSettled = 1'700'000'000;
const JournalName kKilled{1, false, "b1", "op/x.a"};

class Settling : public testing::Test {
 public:
  Settling() : store(folder.at("store")) { ::mkdir(run.c_str(), 0700); }

  /// A process that is killed inside an implementation.
  void end_a_process() const {
    const pid_t child = ::fork();
    if (child == 0) {
      auto made = JournalFile::create(run, kSettled);
      if (!made || !(*made)->append(std::vector{kKilled}).ok()) ::_exit(1);
      (*made)->slots()[0].marks[0].store(kKilled.number);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  /// Journals of running processes, by their locks.
  std::vector<base::FileLock> running_processes(int count) const {
    std::vector<base::FileLock> locks;
    for (int i = 0; i < count; ++i)
      EXPECT_TRUE(locks.emplace_back(run + "/journal-7-7-7-" + std::to_string(i), 0));
    return locks;
  }
  bool told(const Settlement& found, std::string_view code) const {
    return std::ranges::find(found.news, code, &JournalNews::code) != found.news.end();
  }
  /// The number of files other than the lock.
  size_t files() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(run))
      count += entry.path() != lock_path(run) ? 1 : 0;
    return count;
  }

  TemporaryFolder folder;
  std::string run = folder.at("run");
  QuarantineStore store;
};

TEST_F(Settling, evaluates_ended_processes_once) {
  end_a_process();
  const Settlement first = settle(run, store, kSettled);
  EXPECT_EQ(first.ends, 1u);
  EXPECT_TRUE(told(first, "journal.suspects"));
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(settle(run, store, kSettled).ends, 0u);
  end_a_process();
  const Settlement second = settle(run, store, kSettled + 60);
  EXPECT_TRUE(told(second, "journal.blamed"));
  EXPECT_NE(second.list.find("op/x.a", "b1", kSettled + 61), nullptr);
  EXPECT_NE(store.read()->find("op/x.a", "b1", kSettled + 61), nullptr);
}

TEST_F(Settling, ignores_running_processes) {
  auto mine = JournalFile::create(run, kSettled);
  ASSERT_TRUE(mine);
  (*mine)->slots()[0].marks[0].store(1);
  EXPECT_EQ(settle(run, store, kSettled).ends, 0u);
  EXPECT_EQ(files(), 1u);
  (*mine)->remove();
}

TEST_F(Settling, among_running_processes_reads_no_journal_and_needs_no_lock) {
  const std::vector<base::FileLock> running = running_processes(300);
  const base::FileLock busy(lock_path(run), 0);
  ASSERT_TRUE(busy);
  const Settlement found = settle(run, store, kSettled);
  EXPECT_TRUE(found.problem.ok());
  EXPECT_EQ(found.tested, 300u);
  EXPECT_EQ(found.read, 0u);
  EXPECT_EQ(found.locked, 0u);
}

TEST_F(Settling, reads_only_the_journal_of_the_process_that_ended) {
  const std::vector<base::FileLock> running = running_processes(300);
  end_a_process();
  const Settlement found = settle(run, store, kSettled);
  EXPECT_EQ(found.tested, 301u);
  EXPECT_EQ(found.read, 1u);
  EXPECT_EQ(found.locked, 1u);
  EXPECT_EQ(found.list.ends.size(), 1u);
  EXPECT_EQ(files(), 300u);
}

TEST_F(Settling, releases_the_lock_between_batches) {
  for (int i = 0; i < 40; ++i) end_a_process();
  const Settlement found = settle(run, store, kSettled);
  EXPECT_EQ(found.locked, 2u);
  EXPECT_EQ(found.ends, 40u);
  EXPECT_EQ(found.list.ends.size(), 40u);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Settling, of_processes_that_start_together_one_evaluates_a_journal_and_all_see_the_verdict) {
  constexpr uint32_t kEnded = 40;
  constexpr int kStarting = 8;
  const std::vector<base::FileLock> running = running_processes(50);
  for (uint32_t i = 0; i < kEnded; ++i) end_a_process();
  int gate[2] = {-1, -1}, results[2] = {-1, -1};
  ASSERT_EQ(::pipe(gate), 0);
  ASSERT_EQ(::pipe(results), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kStarting; ++i) {
    const pid_t child = children.emplace_back(::fork());
    if (child != 0) continue;
    ::close(gate[1]);
    char opened = 0;
    if (::read(gate[0], &opened, 1) != 0) ::_exit(1);
    const Settlement found = settle(run, store, kSettled);
    const bool complete = found.problem.ok() && found.list.ends.size() == kEnded &&
                          found.list.find("op/x.a", "b1", kSettled) != nullptr;
    ::_exit(complete && ::write(results[1], &found.ends, sizeof found.ends) > 0 ? 0 : 1);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  ::close(results[1]);
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a process that misses a verdict";
  }
  uint32_t all = 0, ends = 0;
  while (::read(results[0], &ends, sizeof ends) == sizeof ends) all += ends;
  ::close(results[0]);
  EXPECT_EQ(all, kEnded);
  EXPECT_EQ(store.read()->ends.size(), kEnded);
  EXPECT_EQ(files(), 50u);
}

TEST_F(Settling, counts_unreadable_journals_and_continues) {
  write_file(run + "/journal-1-1-1-1", "OPMUXJNL and nothing else");
  write_file(run + "/new-journal-1", "half made");
  const Settlement found = settle(run, store, kSettled);
  EXPECT_EQ(found.damaged, 1u);
  EXPECT_TRUE(told(found, "journal.damaged"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(Settling, without_a_store_keeps_verdicts_in_memory_and_journals_for_the_next) {
  for (int i = 0; i < 40; ++i) end_a_process();
  write_file(folder.at("store"), "a file where the folder should be");
  const Settlement found = settle(run, store, kSettled);
  EXPECT_EQ(found.list.ends.size(), 40u) << "those of all batches";
  EXPECT_TRUE(told(found, "store.folder"));
  EXPECT_EQ(files(), 40u);
}

TEST_F(Settling, reports_a_damaged_store_and_overwrites_nothing) {
  ASSERT_TRUE(settle(run, store, kSettled).news.empty());
  ::mkdir(folder.at("store").c_str(), 0700);
  write_file(store.path(), "opmux quarantine 9\nsomething\n");
  EXPECT_TRUE(told(settle(run, store, kSettled), "quarantine.version"));
  end_a_process();
  const Settlement found = settle(run, store, kSettled);
  EXPECT_TRUE(told(found, "quarantine.version"));
  EXPECT_EQ(files(), 1u) << "kept until the store can be written";
}

TEST_F(Settling, removes_expired_quarantines_from_the_store) {
  end_a_process();
  end_a_process();
  ASSERT_EQ(settle(run, store, kSettled).list.entries.size(), 1u);
  EXPECT_TRUE(settle(run, store, kSettled + kQuarantineSeconds).list.entries.empty());
  EXPECT_TRUE(store.read()->entries.empty());
}

}  // namespace
}  // namespace opmux::crash
