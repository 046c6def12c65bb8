#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "crash/process_journal.hpp"
#include "crash/settlement.hpp"
#include "temporary_folder.hpp"

namespace opmux::health {
namespace {

int journal_kills() {
  const char* const kills = std::getenv("OPMUX_CRASH_KILLS");
  return kills == nullptr ? 300 : std::atoi(kills);
}

/// Writes journals, names and slots until it is killed.
[[noreturn]] void write_journals(const std::string& folder, int at_work) {
  crash::ProcessJournal& journal = crash::ProcessJournal::instance();
  uint32_t number = 0;
  while (true) {
    if (!journal.join(folder, false, 1).ok()) ::_exit(1);
    if (number == 0 && ::write(at_work, "!", 1) != 1) ::_exit(1);
    crash::HazardSlot* const slot = journal.take_slot();
    for (int i = 0; i < 20; ++i) {
      const crash::JournalName name{++number % crash::kNumberMask + 1, false,
                                    "b" + std::to_string(number),
                                    "op/x.v" + std::to_string(number)};
      if (!journal.note({&name, 1}).ok()) ::_exit(1);
      slot->marks[0].store(name.number);
      slot->marks[0].store(0);
    }
    journal.give_back(slot);
    journal.leave(false);
  }
}

TEST(JournalWriter, killed_at_any_moment_leaves_a_readable_journal) {
  const test::TemporaryFolder folder;
  const std::string run = folder.at("run");
  ASSERT_TRUE(base::make_private_folder(run).ok());
  const crash::QuarantineStore store(folder.at("store"));
  std::minstd_rand random(1);
  uint64_t unreadable = 0, ends = 0;
  int pipe[2] = {-1, -1};
  ASSERT_EQ(::pipe(pipe), 0);
  const int kills = journal_kills();
  for (int i = 0; i < kills; ++i) {
    const pid_t child = ::fork();
    if (child == 0) write_journals(run, pipe[1]);
    ASSERT_GT(child, 0);
    char byte = 0;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
    const timespec soon{0, static_cast<long>(random() % 500'000)};
    ::nanosleep(&soon, nullptr);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended before it was killed";
    const crash::Settlement found = crash::settle(run, store, 1'700'000'000);
    unreadable += found.damaged + found.other_version;
    ends += found.ends;
  }
  std::cout << kills << " kills, " << ends << " journals left behind, " << unreadable
            << " unreadable\n";
  EXPECT_EQ(unreadable, 0u);
  EXPECT_GT(ends, 0u);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace opmux::health
