#include "policy/files/policy_files.hpp"

#include <sys/stat.h>

#include "temporary_folder.hpp"

namespace opmux::policy {
namespace {

using test::TemporaryFolder;
using test::write_file;

TEST(PolicyFiles, reads_one_file) {
  const TemporaryFolder folder;
  write_file(folder.at("a.txt"), "opmux: 1\n");
  const auto files = read_policy_files(folder.at("a.txt"));
  ASSERT_TRUE(files);
  EXPECT_EQ(*files, (std::vector<FileText>{{folder.at("a.txt"), "opmux: 1\n"}}));
}

TEST(PolicyFiles, reads_a_folder_bytewise_by_name) {
  const TemporaryFolder folder;
  for (const char* name : {"b.yaml", "a.json", "B.yaml", ".hidden.yaml", "notes.txt", "c.yaml~"}) {
    write_file(folder.at(name), name);
  }
  std::vector<std::string> texts;
  const auto files = read_policy_files(folder.path());
  ASSERT_TRUE(files);
  for (const FileText& file : *files) texts.push_back(file.text);
  EXPECT_THAT(texts, testing::ElementsAre("B.yaml", "a.json", "b.yaml"));
}

TEST(PolicyFiles, reports_why_there_is_nothing_to_read) {
  const TemporaryFolder folder;
  const Status missing = read_policy_files(folder.at("none.yaml")).error();
  EXPECT_EQ(missing.reason(), "config.file");
  EXPECT_NE(missing.message().find("none.yaml: No such file"), std::string_view::npos);
  EXPECT_NE(read_policy_files(folder.path()).error().message().find("has no file that ends in"),
            std::string_view::npos);
}

TEST(PolicyFiles, does_not_wait_for_a_pipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.at("pipe.yaml").c_str(), 0600), 0);
  EXPECT_NE(
      read_policy_files(folder.at("pipe.yaml")).error().message().find("it is not a regular file"),
      std::string_view::npos);
}

TEST(PolicyFiles, refuses_a_file_that_is_too_large) {
  const TemporaryFolder folder;
  write_file(folder.at("large.yaml"), "");
  std::filesystem::resize_file(folder.at("large.yaml"), kMostBytes + 20000);
  EXPECT_NE(read_policy_files(folder.at("large.yaml")).error().message().find("more than 16777216"),
            std::string_view::npos);
}

}  // namespace
}  // namespace opmux::policy
