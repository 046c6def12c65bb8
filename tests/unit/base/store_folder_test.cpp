#include "base/system/files.hpp"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "temporary_folder.hpp"

namespace opmux::base {
namespace {

using test::TemporaryFolder;

TEST(StoreFolder, is_where_the_program_or_the_system_says) {
  EXPECT_EQ(store_folder("/state"), "/state/store");
  EXPECT_EQ(run_folder("/state"), "/state/run");
  EXPECT_TRUE(store_folder("").empty() || store_folder("").ends_with("/opmux"));
}

TEST(StoreFolder, is_created_for_this_user_only) {
  const TemporaryFolder folder;
  ASSERT_TRUE(make_private_folder(folder.at("a/b")).ok());
  struct stat made{};
  ASSERT_EQ(::stat(folder.at("a/b").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u);
  EXPECT_TRUE(make_private_folder(folder.at("a/b")).ok()) << "the folder may already exist";
  ::chmod(folder.at("a/b").c_str(), 0750);
  EXPECT_EQ(make_private_folder(folder.at("a/b")).reason(), "store.folder");
  EXPECT_EQ(make_private_folder("/proc/nowhere").reason(), "store.folder");
  EXPECT_EQ(make_private_folder("").reason(), "store.folder");
}

TEST(StoreFolder, must_not_be_a_link) {
  const TemporaryFolder folder;
  ASSERT_TRUE(make_private_folder(folder.at("real")).ok());
  std::filesystem::create_symlink("real", folder.at("link"));
  EXPECT_EQ(make_private_folder(folder.at("link")).reason(), "store.folder");
}

TEST(WholeFile, is_the_old_one_or_the_new_one) {
  const TemporaryFolder folder;
  const std::string path = folder.at("file");
  ASSERT_TRUE(replace_file(path, "old", 0600));
  ASSERT_TRUE(replace_file(path, "new one", 0600));
  EXPECT_EQ(read_whole(path, 7).value(), "new one");
  EXPECT_EQ(read_whole(path, 6).error().reason(), "store.read") << "too long";
  EXPECT_FALSE(replace_file(folder.at("nowhere/file"), "text", 0600));
  std::filesystem::create_symlink("file", folder.at("link"));
  EXPECT_EQ(read_whole(folder.at("link"), 7).error().reason(), "store.read");
}

}  // namespace
}  // namespace opmux::base
