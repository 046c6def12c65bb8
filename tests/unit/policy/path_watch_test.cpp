#include "policy/files/policy_file_watcher.hpp"

#include <fcntl.h>
#include <poll.h>

#include "base/system/files.hpp"
#include "temporary_folder.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::write_file;
using Way = PathWatch::Way;

struct PathWatchTest : testing::TestWithParam<Way> {
  PathWatch watch(const std::string& path) { return PathWatch(path, GetParam()); }
  TemporaryFolder folder;
};
INSTANTIATE_TEST_SUITE_P(, PathWatchTest, testing::Values(Way::kernel, Way::looking),
                         [](const auto& each) {
                           return each.param == Way::kernel ? "kernel" : "looking";
                         });

TEST_P(PathWatchTest, notices_that_a_file_was_written) {
  write_file(folder.at("a.yaml"), "1");
  PathWatch watch = this->watch(folder.at("a.yaml"));
  EXPECT_EQ(watch.way(), GetParam());
  EXPECT_FALSE(watch.changed());
  write_file(folder.at("a.yaml"), "two");
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_P(PathWatchTest, notices_a_rename_over_the_file) {
  write_file(folder.at("a.yaml"), "1");
  PathWatch watch = this->watch(folder.at("a.yaml"));
  write_file(folder.at("new"), "2");
  (void)watch.changed();
  fs::rename(folder.at("new"), folder.at("a.yaml"));
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_that_a_file_goes_and_comes_again) {
  write_file(folder.at("a.yaml"), "1");
  PathWatch watch = this->watch(folder.at("a.yaml"));
  fs::remove(folder.at("a.yaml"));
  EXPECT_TRUE(watch.changed());
  write_file(folder.at("a.yaml"), "2");
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_a_file_whose_folder_is_not_there_yet) {
  PathWatch watch = this->watch(folder.at("in/side/a.yaml"));
  EXPECT_FALSE(watch.changed());
  fs::create_directories(folder.at("in/side"));
  (void)watch.changed();
  write_file(folder.at("in/side/a.yaml"), "1");
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_a_link_that_points_elsewhere) {
  // As Kubernetes volumes do: the file is a link into a folder that is itself a link.
  for (const char* version : {"v1", "v2"}) {
    fs::create_directory(folder.at(version));
    write_file(folder.at(std::string(version) + "/a.yaml"), version);
  }
  fs::create_directory_symlink("v1", folder.at("..data"));
  fs::create_symlink("..data/a.yaml", folder.at("a.yaml"));
  PathWatch watch = this->watch(folder.at("a.yaml"));
  EXPECT_FALSE(watch.changed());
  fs::create_directory_symlink("v2", folder.at("..data_tmp"));
  fs::rename(folder.at("..data_tmp"), folder.at("..data"));
  EXPECT_TRUE(watch.changed());
  write_file(folder.at("v2/a.yaml"), "v2 again");
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_that_a_folder_above_is_replaced) {
  fs::create_directories(folder.at("in/side"));
  write_file(folder.at("in/side/a.yaml"), "1");
  PathWatch watch = this->watch(folder.at("in/side/a.yaml"));
  EXPECT_FALSE(watch.changed());
  fs::rename(folder.at("in"), folder.at("old"));
  EXPECT_TRUE(watch.changed());
  fs::create_directories(folder.at("new/side"));
  write_file(folder.at("new/side/a.yaml"), "new");
  fs::rename(folder.at("new"), folder.at("in"));
  EXPECT_TRUE(watch.changed());
  write_file(folder.at("old/side/a.yaml"), "not watched any more");
  EXPECT_FALSE(watch.changed());
  write_file(folder.at("in/side/a.yaml"), "new again");
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_a_file_in_a_new_folder_while_the_removed_one_is_in_use) {
  fs::create_directory(folder.at("in"));
  write_file(folder.at("in/a.yaml"), "1");
  const base::Descriptor in_use(::open(folder.at("in").c_str(), O_RDONLY | O_DIRECTORY));
  PathWatch watch = this->watch(folder.at("in/a.yaml"));
  fs::remove(folder.at("in/a.yaml"));
  EXPECT_TRUE(watch.changed());
  fs::remove(folder.at("in"));
  fs::create_directory(folder.at("in"));
  (void)watch.changed();
  write_file(folder.at("in/a.yaml"), "2");
  EXPECT_TRUE(watch.changed());
}

TEST_P(PathWatchTest, notices_a_write_to_a_file_that_was_added_to_a_folder) {
  PathWatch watch = this->watch(folder.path());
  write_file(folder.at("a.yaml"), "1");
  EXPECT_TRUE(watch.changed());
  write_file(folder.at("a.yaml"), "two");
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_P(PathWatchTest, notices_files_of_a_folder_and_nothing_else) {
  write_file(folder.at("a.yaml"), "1");
  PathWatch watch = this->watch(folder.path());
  EXPECT_FALSE(watch.changed());
  write_file(folder.at("notes.txt"), "1");
  write_file(folder.at(".a.yaml.swp"), "1");
  EXPECT_FALSE(watch.changed());
  write_file(folder.at("b.json"), "1");
  EXPECT_TRUE(watch.changed());
  fs::remove(folder.at("a.yaml"));
  EXPECT_TRUE(watch.changed());
}

TEST(PathWatch, detects_an_active_writer) {
  const TemporaryFolder folder;
  write_file(folder.at("a.yaml"), "1");
  PathWatch watch(folder.at("a.yaml"));
  {
    std::ofstream file(folder.at("a.yaml"), std::ios::trunc);
    file << "half" << std::flush;
    EXPECT_TRUE(watch.changed());
    EXPECT_TRUE(watch.still_written());
  }
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.still_written());
}

TEST(PathWatch, takes_a_created_file_for_open_until_it_is_closed) {
  const TemporaryFolder folder;
  PathWatch watch(folder.at("a.yaml"));
  {
    std::ofstream file(folder.at("a.yaml"));
    file << "half" << std::flush;
    EXPECT_TRUE(watch.changed());
    EXPECT_TRUE(watch.still_written());
  }
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.still_written());
  write_file(folder.at("next"), "2");
  fs::rename(folder.at("next"), folder.at("a.yaml"));
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.still_written()) << "renamed, not created";
}

/// Appends 10,000 lines to a file, which it opens 100 times.
void append_lines(const std::string& path) {
  for (int i = 0; i < 100; ++i) {
    std::ofstream file(path, std::ios::app);
    for (int line = 0; line < 100; ++line) file << "something happened" << std::endl;
  }
}

TEST(PathWatch, is_not_woken_by_writes_to_other_files) {
  const TemporaryFolder folder;
  fs::create_directories(folder.at("in/side"));
  write_file(folder.at("in/side/a.yaml"), "1");
  const std::vector<std::string> logs{folder.at("in/side/log"), folder.at("in/log"),
                                      folder.at("log")};
  for (const std::string& log : logs) write_file(log, "");
  for (const std::string& path : {folder.at("in/side/a.yaml"), folder.at("in/side")}) {
    PathWatch watch(path);
    pollfd waiting{watch.descriptor(), POLLIN, 0};
    for (const std::string& log : logs) {
      append_lines(log);
      EXPECT_EQ(::poll(&waiting, 1, 0), 0) << log;
    }
    write_file(folder.at("in/side/a.yaml"), "2");
    EXPECT_EQ(::poll(&waiting, 1, 0), 1) << path;
    EXPECT_TRUE(watch.changed());
  }
}

TEST(PathWatch, is_readable_when_there_is_something_to_notice) {
  const TemporaryFolder folder;
  PathWatch watch(folder.at("a.yaml"));
  pollfd waiting{watch.descriptor(), POLLIN, 0};
  // Other processes may write to parent folders, so the descriptor cannot be expected to be quiet
  // before.
  write_file(folder.at("a.yaml"), "1");
  EXPECT_EQ(::poll(&waiting, 1, 0), 1);
  EXPECT_EQ(PathWatch(folder.at("a.yaml"), Way::looking).descriptor(), -1);
}

}  // namespace
}  // namespace opmux::policy
