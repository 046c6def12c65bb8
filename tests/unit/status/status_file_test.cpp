#include "status/status_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <memory>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "forked.hpp"
#include "temporary_folder.hpp"

namespace opmux::status_file {
namespace {

using test::TemporaryFolder;

size_t files_in(const TemporaryFolder& folder) {
  const auto all = std::filesystem::directory_iterator(folder.path());
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// Simulates a process that wrote a status file and was killed.
void leave_a_page(const TemporaryFolder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto* const file = new StatusFile(folder.path());
    (void)file->replace("left behind");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST(StatusFile, is_replaced_as_a_whole_and_held) {
  const TemporaryFolder folder;
  StatusFile file(folder.path());
  ASSERT_TRUE(file.prepare().ok());
  EXPECT_EQ(files_in(folder), 0u);
  for (const char* text : {"first", "second", "third"}) {
    ASSERT_TRUE(file.replace(text).ok());
    const auto read = read_status_file(file.path());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->text, text);
    EXPECT_TRUE(read->held);
  }
  EXPECT_EQ(files_in(folder), 1u);
  struct stat facts{};
  ASSERT_EQ(::stat(file.path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(StatusFile, is_not_read_if_others_could_have_written_it) {
  const TemporaryFolder folder;
  StatusFile file(folder.path());
  ASSERT_TRUE(file.prepare().ok() && file.replace("text").ok());
  EXPECT_TRUE(read_status_file(file.path(), ::geteuid()));
  ASSERT_EQ(::chmod(file.path().c_str(), 0622), 0);
  EXPECT_EQ(read_status_file(file.path(), ::geteuid()).error().reason(), "state_page.owner");
  EXPECT_EQ(read_status_file(file.path())->text, "text") << "a person named it";
  ASSERT_EQ(::chmod(file.path().c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.path().c_str(), 65534, 65534), 0);
    EXPECT_EQ(read_status_file(file.path(), ::geteuid()).error().reason(), "state_page.owner");
  }
}

TEST(StatusFile, is_not_waited_for_if_it_is_a_pipe) {
  const TemporaryFolder folder;
  const std::string path = folder.at(std::string(kStatusFilePrefix) + "1");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_status_file(path).error().reason(), "state_page.read");
  (void)sweep_state_pages(folder.path());
}

TEST(StatusFile, is_removed_with_its_object) {
  const TemporaryFolder folder;
  {
    StatusFile file(folder.path());
    ASSERT_TRUE(file.replace("text").ok());
    file.remove();
    EXPECT_TRUE(file.replace("too late").ok());
    EXPECT_EQ(files_in(folder), 0u);
    StatusFile other(folder.path());
    ASSERT_TRUE(other.replace("text").ok());
    EXPECT_EQ(files_in(folder), 1u);
  }
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(StatusFile, is_removed_when_the_process_exits) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto* const file = new StatusFile(folder.path());
    (void)file->replace("text");
    std::exit(files_in(folder) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(StatusFile, of_a_killed_process_is_unlocked_and_removed) {
  const TemporaryFolder folder;
  leave_a_page(folder);
  ASSERT_EQ(files_in(folder), 1u);
  const auto path = std::filesystem::directory_iterator(folder.path())->path().string();
  const auto read = read_status_file(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text, "left behind");
  EXPECT_FALSE(read->held);
  StatusFile living(folder.path());
  ASSERT_TRUE(living.replace("alive").ok());
  test::write_file(folder.at("journal-1"), "not a page");
  EXPECT_EQ(sweep_state_pages(folder.path()), 1u);
  EXPECT_EQ(files_in(folder), 2u);
  EXPECT_TRUE(read_status_file(living.path()));
}

TEST(StatusFile, being_written_is_kept_unless_it_is_old) {
  const TemporaryFolder folder;
  const std::string path = folder.at("state-1-2-3-4.new");
  test::write_file(path, "half");
  EXPECT_EQ(sweep_state_pages(folder.path()), 0u);
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  EXPECT_EQ(sweep_state_pages(folder.path()), 1u);
}

TEST(StatusFile, is_left_to_the_parent_by_a_forked_child) {
  const TemporaryFolder folder;
  auto file = std::make_unique<StatusFile>(folder.path());
  ASSERT_TRUE(file->replace("the parent's").ok());
  EXPECT_TRUE(test::true_in_forked_child([&] {
    const bool kept = file->replace("the child's").ok();
    file.reset();
    return kept && files_in(folder) == 1;
  }));
  EXPECT_EQ(read_status_file(file->path())->text, "the parent's");
}

TEST(StatusFile, is_not_held_by_a_child_that_outlives_its_process) {
  const TemporaryFolder folder;
  int pipe_ends[2], told[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  ASSERT_EQ(::pipe(told), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    StatusFile file(folder.path());
    (void)file.replace("text");
    if (::fork() == 0) {
      char byte = 0;
      (void)!::write(told[1], &byte, 1);  // By now fork() has closed the inherited descriptors.
      ::close(pipe_ends[1]);
      (void)!::read(pipe_ends[0], &byte, 1);
      ::_exit(0);
    }
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(sweep_state_pages(folder.path()), 1u);
  for (const int end : {pipe_ends[0], pipe_ends[1], told[0], told[1]}) ::close(end);
}

TEST(StatusFile, is_found_whole_and_held_while_it_is_replaced) {
  const TemporaryFolder folder;
  StatusFile file(folder.path());
  const std::string even(5000, 'e'), odd(9000, 'o');
  ASSERT_TRUE(file.replace(even).ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop.load(); ++i) (void)file.replace(i % 2 == 0 ? odd : even);
  });
  for (int i = 0; i < 2000; ++i) {
    const auto read = read_status_file(file.path());
    if (!read) continue;  // The file was replaced many times in a row.
    ASSERT_TRUE(read->held);
    ASSERT_TRUE(read->text == even || read->text == odd) << read->text.size();
    ASSERT_EQ(sweep_state_pages(folder.path()), 0u);
  }
  stop.store(true);
  writer.join();
  EXPECT_TRUE(read_status_file(file.path()));
}

TEST(StatusFile, says_why_it_cannot_be_written) {
  const TemporaryFolder folder;
  StatusFile file(folder.at("missing"));
  const Status status = file.replace("text");
  EXPECT_EQ(status.reason(), "state_page.file");
  EXPECT_EQ(read_status_file(file.path()).error().reason(), "state_page.read");
}

}  // namespace
}  // namespace opmux::status_file
