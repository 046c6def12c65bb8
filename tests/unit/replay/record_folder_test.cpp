#include "replay/recording_file.hpp"

#include <sys/stat.h>

#include "temporary_folder.hpp"

namespace opmux::replay {
namespace {

using test::TemporaryFolder;
using test::write_file;

unsigned mode_of(const std::string& path) {
  struct stat found{};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

TEST(RecordFolder, writes_for_this_user_alone) {
  const TemporaryFolder folder;
  const RecordFolder records(folder.at("a/b"), 4);
  ASSERT_TRUE(records.write("one", "bytes").ok());
  EXPECT_EQ(mode_of(records.path()), 0700u);
  EXPECT_EQ(mode_of(records.path_of("one")), 0600u);
  EXPECT_TRUE(records.path_of("one").ends_with("/a/b/one.opmux-replay"));
}

TEST(RecordFolder, uses_each_name_once_up_to_the_file_limit) {
  const TemporaryFolder folder;
  const RecordFolder records(folder.at("records"), 2);
  EXPECT_TRUE(records.write("one", "bytes").ok());
  EXPECT_EQ(records.write("one", "others").reason(), "record.known");
  write_file(records.path() + "/other", "does not count");
  EXPECT_TRUE(records.write("two", "bytes").ok());
  EXPECT_EQ(records.write("three", "bytes").reason(), "record.full");
  EXPECT_EQ(records.write("three", "bytes").code(), Code::resource);
}

TEST(RecordFolder, reports_the_obstacle) {
  const TemporaryFolder folder;
  write_file(folder.at("file"), "");
  EXPECT_EQ(RecordFolder(folder.at("file"), 2).write("one", "x").reason(), "record.folder");
  EXPECT_EQ(RecordFolder(folder.at("file/below"), 2).write("one", "x").reason(), "record.folder");
}

}  // namespace
}  // namespace opmux::replay
