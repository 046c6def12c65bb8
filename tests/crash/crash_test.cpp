#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "crash/quarantine_file.hpp"
#include "server_process.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

int crash_rounds() {
  const char* const rounds = std::getenv("OPMUX_CRASH_ROUNDS");
  return rounds == nullptr ? 10 : std::atoi(rounds);
}

class Crash : public testing::Test {
 public:
  /// Candidates as printed by the next process, e.g. "op3/fast.kernel health.quarantined ".
  std::string choices() const {
    const ServerProcess server({folder.path(), "choices"});
    std::string all = server.read_all();
    EXPECT_EQ(server.end(), 0);
    return all;
  }
  /// The candidates that the next process quarantines.
  std::vector<std::string> quarantined() const {
    std::vector<std::string> ids;
    std::istringstream lines(choices());
    size_t candidates = 0;
    for (std::string id, code, rest; lines >> id >> code; ++candidates) {
      std::getline(lines, rest);
      if (code == "health.quarantined") ids.push_back(id);
    }
    EXPECT_EQ(candidates, 16u);
    return ids;
  }
  crash::QuarantineList list() const {
    return crash::QuarantineStore(folder.at("store")).read().value();
  }
  void forget() const { std::filesystem::remove_all(folder.at("store")); }

  TemporaryFolder folder;
};

TEST_F(Crash, only_the_kernel_that_faulted_on_one_of_eight_threads_is_quarantined) {
  const std::vector<std::string> kinds{"segv", "bus", "ill", "fpe", "abort"};
  const int rounds = crash_rounds();
  int found = 0, innocents = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string& how = kinds[static_cast<size_t>(round) % kinds.size()];
    const std::string thread = std::to_string((round * 3 + round / 5) % 8);
    ASSERT_NE(end_of({folder.path(), "fault", how, thread}), 0);
    const std::vector<std::string> ids = quarantined();
    const std::string culprit = "op" + thread + "/fast.kernel";
    const bool blamed = std::ranges::find(ids, culprit) != ids.end();
    EXPECT_TRUE(blamed) << how << " on thread " << thread;
    found += blamed ? 1 : 0;
    innocents += static_cast<int>(ids.size()) - (blamed ? 1 : 0);
    forget();
  }
  std::cout << "culprit quarantined " << found << "/" << rounds << ", innocents " << innocents
            << "\n";
  EXPECT_EQ(found, rounds);
  EXPECT_EQ(innocents, 0);
}

TEST_F(Crash, a_quarantined_implementation_is_replaced_until_it_is_cleared) {
  ASSERT_NE(end_of({folder.path(), "fault", "segv", "3"}), 0);
  EXPECT_NE(choices().find("op3/plain.slow - chosen"), std::string::npos);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op3/fast.kernel"}) << "at the second start";
  forget();
  EXPECT_TRUE(quarantined().empty());
}

TEST_F(Crash, exit_inside_a_kernel_counts_as_its_crash) {
  ASSERT_NE(end_of({folder.path(), "fault", "exit", "4"}), 0);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op4/fast.kernel"});
  EXPECT_EQ(list().entries.at(0).how, "exit");
}

TEST_F(Crash, a_stack_overflow_is_recorded_on_the_alternate_stack) {
  ASSERT_NE(end_of({folder.path(), "fault", "overflow", "2"}), 0);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op2/fast.kernel"});
}

TEST_F(Crash, a_fault_on_a_pool_thread_is_blamed_on_its_kernel) {
  ASSERT_NE(end_of({folder.path(), "pool", "segv"}), 0);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op0/fast.kernel"});
}

TEST_F(Crash, a_fault_outside_kernels_blames_no_implementation) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(end_of({folder.path(), "outside", "segv"}), 0);
    EXPECT_TRUE(quarantined().empty());
  }
  EXPECT_TRUE(list().ends.empty());
}

TEST_F(Crash, exit_while_other_threads_are_inside_kernels_blames_none) {
  for (int round = 0; round < 5; ++round) {
    const int status = end_of({folder.path(), "exit"});
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_TRUE(quarantined().empty());
  }
  EXPECT_TRUE(list().ends.empty());
}

TEST_F(Crash, a_kill_records_suspects_without_quarantine) {
  ServerProcess({folder.path(), "serve"}).kill_at_work();
  EXPECT_TRUE(quarantined().empty());
  ASSERT_EQ(list().ends.size(), 1u);
  EXPECT_GT(list().ends[0].suspects.size(), 1u) << "most of the eight threads were inside a kernel";
  // If all suspects are the same in two crashes, none of them is singled out.
  ServerProcess({folder.path(), "serve"}).kill_at_work();
  EXPECT_TRUE(quarantined().empty());
  EXPECT_EQ(list().ends.size(), 2u);
}

TEST_F(Crash, a_second_kill_quarantines_the_only_common_suspect) {
  // One thread, which is inside a kernel almost always; a kill that finds it outside does not
  // count.
  for (int kills = 0; list().entries.empty() && kills < 50; ++kills) {
    EXPECT_LT(list().ends.size(), 2u);
    ServerProcess({folder.path(), "serve", "1"}).kill_at_work();
    (void)choices();  // Starts a process that evaluates the journals.
  }
  EXPECT_EQ(list().ends.size(), 2u);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op0/fast.kernel"});
  EXPECT_EQ(list().entries.at(0).how, "suspect");
}

TEST_F(Crash, external_signals_blame_no_implementation) {
  const ServerProcess server({folder.path(), "serve"});
  server.read_some();
  server.send(SIGABRT);
  EXPECT_TRUE(WIFSIGNALED(server.end()));
  EXPECT_TRUE(quarantined().empty());
  EXPECT_EQ(list().ends.size(), 1u) << "recorded as a suspect, as after any kill";
}

TEST_F(Crash, a_process_that_was_asked_to_end_leaves_no_suspects) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const ServerProcess server({folder.path(), "serve"});
    server.read_some();
    server.send(signal);
    const int status = server.end();
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(quarantined().empty());
    EXPECT_TRUE(list().ends.empty()) << "signal " << signal;
  }
}

TEST_F(Crash, only_journals_of_ended_processes_are_evaluated) {
  const ServerProcess lives({folder.path(), "serve"});
  lives.read_some();
  ASSERT_NE(end_of({folder.path(), "fault", "segv", "5"}), 0);
  EXPECT_EQ(quarantined(), std::vector<std::string>{"op5/fast.kernel"});
  EXPECT_TRUE(list().ends.empty()) << "the process that is still running is not a suspect";
  lives.send(SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(lives.end()));
}

}  // namespace
}  // namespace opmux::test
