#include "tuner/workbench.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "rows.hpp"
#include "temporary_folder.hpp"

namespace opmux::tuner {
namespace {

PointKey key(int64_t value = 16) {
  return {{"cpu 1 cores=2", "kernel=6.1"},
          "matmul",
          0xf000000000000001u,
          testing::row().cell,
          "M",
          value,
          {{"onednn.dense", "a1"}, {"openblas.gemm", "b2"}}};
}

MeasuredPoint kept_point(uint32_t rounds = 20) {
  MeasuredPoint made;
  made.baseline = {"onednn.dense", "a1"};
  made.winner = "openblas.gemm";
  made.comparisons = {{{"openblas.gemm", "b2"}, -0.5, -0.6, -0.4, rounds}};
  return made;
}

bool has(const Workbench& workbench, const PointKey& wanted) {
  const auto found = workbench.find(wanted);
  return found && found->has_value();
}

class WorkbenchTest : public ::testing::Test {
 protected:
  Workbench open() { return Workbench::open(path_).value(); }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_.at("workbench.sqlite");
};

TEST_F(WorkbenchTest, keeps_points_for_the_next_process) {
  EXPECT_FALSE(has(open(), key()));
  const Status kept = open().keep(key(), kept_point());
  ASSERT_TRUE(kept.ok()) << kept.message();
  const auto found = open().find(key());
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ(**found, kept_point());
  ASSERT_TRUE(open().keep(key(), kept_point(30)).ok());
  EXPECT_EQ((*open().find(key()))->comparisons[0].rounds, 30u) << "a later point replaces it";
}

TEST_F(WorkbenchTest, has_access_for_this_user_alone) {
  open();
  struct stat found{};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0600u);
}

TEST_F(WorkbenchTest, a_point_holds_for_its_call_machine_and_builds_only) {
  Workbench workbench = open();
  ASSERT_TRUE(workbench.keep(key(), kept_point()).ok());
  EXPECT_FALSE(has(workbench, key(17)));
  const auto other = [&](auto change) {
    PointKey changed = key();
    change(changed);
    return has(workbench, changed);
  };
  EXPECT_FALSE(other([](PointKey& k) { k.machine.hard = "cpu 2"; }));
  EXPECT_FALSE(other([](PointKey& k) { k.machine.soft = "kernel=6.2"; }));
  EXPECT_FALSE(other([](PointKey& k) { k.op = "linear"; }));
  EXPECT_FALSE(other([](PointKey& k) { k.schema_hash = 1; }));
  EXPECT_FALSE(other([](PointKey& k) { k.cell.threads = 2; }));
  EXPECT_FALSE(other([](PointKey& k) { k.dim = "N"; }));
  EXPECT_FALSE(other([](PointKey& k) { k.candidates[1].build = "b3"; }));
  EXPECT_FALSE(other([](PointKey& k) { k.candidates.pop_back(); }));
  EXPECT_TRUE(other([](PointKey& k) { std::swap(k.candidates[0], k.candidates[1]); }));
}

TEST_F(WorkbenchTest, that_is_damaged_or_of_another_version_is_refused) {
  std::ofstream(path_) << "this is not a database, but it is long enough to have a header of one. "
                       << std::string(4096, 'x');
  const auto damaged = Workbench::open(path_);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().reason(), "tune.workbench");
  EXPECT_NE(damaged.error().message().find(path_), std::string::npos);
  EXPECT_FALSE(Workbench::open(folder_.at("absent/workbench.sqlite")));
}

TEST_F(WorkbenchTest, keeps_what_was_committed_when_the_process_is_killed) {
  open();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Workbench workbench = open();
    for (int64_t value = 1;; ++value) {
      if (!workbench.keep(key(value), kept_point()).ok()) _exit(1);
      if (::write(ready[1], &value, sizeof value) != sizeof value) _exit(2);
    }
  }
  close(ready[1]);
  int64_t committed = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(::read(ready[0], &committed, sizeof committed), 8);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  while (::read(ready[0], &committed, sizeof committed) == 8) continue;
  close(ready[0]);
  const Workbench workbench = open();
  for (int64_t value = 1; value <= committed; ++value) EXPECT_TRUE(has(workbench, key(value)));
}

TEST_F(WorkbenchTest, says_that_the_disk_is_full_and_keeps_what_it_has) {
  ASSERT_TRUE(open().keep(key(), kept_point()).ok());
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    Workbench workbench = open();
    const rlimit none{16384, 16384};
    setrlimit(RLIMIT_FSIZE, &none);
    for (int64_t value = 100; value < 400; ++value) {
      const Status status = workbench.keep(key(value), kept_point());
      if (!status.ok()) _exit(status.reason() == "tune.workbench" ? 7 : 8);
    }
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(has(open(), key()));
  EXPECT_TRUE(open().keep(key(99), kept_point()).ok());
}

}  // namespace
}  // namespace opmux::tuner
