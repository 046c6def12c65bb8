#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "temporary_folder.hpp"

namespace opmux::base {
namespace {

using test::TemporaryFolder;

std::string a_pipe(const TemporaryFolder& folder) {
  const std::string path = folder.at("pipe");
  EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
  return path;
}

TEST(GivenFile, is_read_up_to_a_limit) {
  const TemporaryFolder folder;
  test::write_file(folder.at("file"), "some text");
  std::filesystem::create_symlink(folder.at("file"), folder.at("link"));
  EXPECT_EQ(read_given(folder.at("file"), 9).value(), "some text");
  EXPECT_EQ(read_given(folder.at("link"), 9).value(), "some text");
  EXPECT_FALSE(read_given(folder.at("file"), 8));
  EXPECT_FALSE(read_given(folder.at("absent"), 8));
  EXPECT_FALSE(read_given(folder.path(), 8));
  EXPECT_FALSE(read_given("/dev/zero", 100'000));
  EXPECT_EQ(read_given("/dev/null", 8).value(), "");
}

TEST(GivenFile, may_be_a_pipe_that_a_process_writes_to) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(reader.get());
  ASSERT_TRUE(write_all(writer.get(), "first"));
  EXPECT_FALSE(read_given(path, 100, 1)) << "the writer neither writes more nor closes it";
  ASSERT_TRUE(write_all(writer.get(), "through a pipe"));
  writer.reset();
  EXPECT_EQ(read_given(path, 100, 1).value(), "through a pipe");
}

TEST(GivenFile, fails_for_a_pipe_without_a_writer_instead_of_waiting) {
  const TemporaryFolder folder;
  const std::string path = a_pipe(folder);
  constexpr int kForever = -1;
  EXPECT_FALSE(read_given(path, 100, kForever));
  EXPECT_FALSE(read_whole(path, 100));
}

TEST(GivenFile, belongs_to_this_user_if_others_cannot_write_to_it) {
  const TemporaryFolder folder;
  test::write_file(folder.at("file"), "text");
  const Descriptor file(::open(folder.at("file").c_str(), O_RDONLY | O_CLOEXEC));
  for (const mode_t mode : {0600, 0644, 0444}) {
    ASSERT_EQ(::fchmod(file.get(), mode), 0);
    EXPECT_TRUE(is_own(file)) << std::oct << mode;
  }
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::fchmod(file.get(), mode), 0);
    EXPECT_FALSE(is_own(file)) << std::oct << mode;
  }
  EXPECT_FALSE(is_own(Descriptor()));
  const Descriptor root(::open("/proc/1/stat", O_RDONLY | O_CLOEXEC));
  if (::geteuid() != 0 && root) {
    EXPECT_FALSE(is_own(root));
  }
}

}  // namespace
}  // namespace opmux::base
