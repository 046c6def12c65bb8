#include "plugin/trust/trusted_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "private_folder.hpp"

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// The reasons why a path is not trusted, or why it was not opened.
std::vector<std::string> reasons_of(const Result<OpenedPath>& opened) {
  if (!opened) return {std::string(opened.error().reason())};
  std::vector<std::string> words;
  for (const Status& problem : opened->problems) words.emplace_back(problem.reason());
  return words;
}

class TrustedPath : public testing::Test {
 protected:
  std::vector<std::string> reasons(const std::string& path) {
    return reasons_of(open_file(path, rules_));
  }
  PrivateFolder folder_;
  PathRules rules_{{0, geteuid()}, {}};
};

TEST_F(TrustedPath, opens_a_private_file_below_the_folder_for_temporary_ones) {
  const auto opened = open_file(folder_.write("a/b.so", "x"), rules_);
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_THAT(opened->problems, IsEmpty());
  EXPECT_EQ(opened->real_path, folder_.at("a/b.so"));
  char byte = 0;
  EXPECT_EQ(::read(opened->descriptor.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(TrustedPath, finds_a_file_or_folder_that_others_can_write_to) {
  const std::string file = folder_.write("a/b/c.so", "x");
  for (const auto& [path, mode] : {std::pair{file, 0664}, {file, 0646}}) {
    chmod(path.c_str(), static_cast<mode_t>(mode));
    EXPECT_THAT(reasons(file), ElementsAre("trust.mode")) << std::oct << mode;
  }
  chmod(file.c_str(), 0644);
  for (const char* parent : {"a", "a/b"}) {
    chmod(folder_.at(parent).c_str(), 0775);
    EXPECT_THAT(reasons(file), ElementsAre("trust.mode")) << parent;
    chmod(folder_.at(parent).c_str(), 0755);
  }
  EXPECT_THAT(reasons(file), IsEmpty());
}

TEST_F(TrustedPath, finds_a_file_or_folder_of_another_user) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string file = folder_.write("a/b.so", "x");
  for (const std::string& path : {file, folder_.at("a")}) {
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_THAT(reasons(file), ElementsAre("trust.owner")) << path;
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_THAT(reasons(file), IsEmpty());
}

TEST_F(TrustedPath, trusts_the_user_of_the_process_and_those_it_is_told_to) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string file = folder_.write("b.so", "x");
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  rules_.owners = {0, 12345};
  EXPECT_THAT(reasons(file), IsEmpty());
}

TEST_F(TrustedPath, a_sticky_folder_of_root_is_trusted_only_above_a_private_one) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a sticky folder of root";
  fs::create_directory(folder_.at("shared"));
  chmod(folder_.at("shared").c_str(), 01777);
  EXPECT_THAT(reasons(folder_.write("shared/private/b.so", "x")), IsEmpty());
  EXPECT_THAT(reasons(folder_.write("shared/b.so", "x")), ElementsAre("trust.shared"));
  EXPECT_THAT(reasons_of(open_folder(folder_.at("shared"), rules_)), ElementsAre("trust.mode"));
  ASSERT_EQ(chown(folder_.at("shared").c_str(), 12345, 12345), 0);
  EXPECT_THAT(reasons(folder_.at("shared/private/b.so")), ElementsAre("trust.owner"));
}

TEST_F(TrustedPath, follows_links_in_trusted_folders_and_reports_their_targets) {
  const std::string file = folder_.write("v2/b.so", "x");
  fs::create_symlink("v2", folder_.at("current"));
  fs::create_symlink(folder_.at("current/./../current/b.so"), folder_.at("c.so"));
  const auto opened = open_file(folder_.at("c.so"), rules_);
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_THAT(opened->problems, IsEmpty());
  EXPECT_EQ(opened->real_path, file);
}

TEST_F(TrustedPath, does_not_trust_links_that_others_could_have_made) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give links away";
  folder_.write("v2/b.so", "x");
  fs::create_symlink("v2", folder_.at("current"));
  ASSERT_EQ(lchown(folder_.at("current").c_str(), 12345, 12345), 0);
  EXPECT_THAT(reasons(folder_.at("current/b.so")), ElementsAre("trust.link"));
  fs::create_directory(folder_.at("shared"));
  chmod(folder_.at("shared").c_str(), 01777);
  fs::create_symlink(folder_.at("v2"), folder_.at("shared/v2"));
  EXPECT_THAT(reasons(folder_.at("shared/v2/b.so")), ElementsAre("trust.link"));
}

TEST_F(TrustedPath, judges_the_folders_that_a_link_leads_through) {
  folder_.write("open/v2/b.so", "x");
  chmod(folder_.at("open").c_str(), 0777);
  fs::create_symlink("open/v2/b.so", folder_.at("b.so"));
  EXPECT_THAT(reasons(folder_.at("b.so")), ElementsAre("trust.mode"));
}

TEST_F(TrustedPath, links_in_a_circle_end) {
  fs::create_symlink("b", folder_.at("a"));
  fs::create_symlink("a", folder_.at("b"));
  EXPECT_THAT(reasons(folder_.at("a")), ElementsAre("plugin.path"));
}

TEST_F(TrustedPath, the_folders_above_the_library_itself_are_not_judged) {
  folder_.write("open/lib/backends/b.so", "x");
  chmod(folder_.at("open").c_str(), 0777);
  chmod(folder_.at("open/lib").c_str(), 0777);
  rules_.own_folder = folder_.at("open/lib");
  EXPECT_THAT(reasons(folder_.at("open/lib/backends/b.so")), IsEmpty());
  chmod(folder_.at("open/lib/backends").c_str(), 0777);
  EXPECT_THAT(reasons(folder_.at("open/lib/backends/b.so")), ElementsAre("trust.mode"));
  rules_.own_folder = folder_.at("open/li");
  EXPECT_THAT(reasons(folder_.at("open/lib/backends/b.so")),
              ElementsAre("trust.mode", "trust.mode"));
}

TEST_F(TrustedPath, opens_only_regular_files_by_absolute_paths) {
  folder_.write("b.so", "x");
  fs::current_path(folder_.path());
  EXPECT_THAT(reasons("b.so"), ElementsAre("trust.relative"));
  EXPECT_THAT(reasons("./b.so"), ElementsAre("trust.relative"));
  EXPECT_THAT(reasons(""), ElementsAre("trust.relative"));
  EXPECT_THAT(reasons(folder_.at("b.so") + std::string("\0.so", 4)), ElementsAre("trust.relative"));
  fs::current_path("/");
  EXPECT_THAT(reasons(folder_.path().string()), ElementsAre("trust.kind"));
  EXPECT_THAT(reasons(folder_.at("b.so/c")), ElementsAre("plugin.path"));
  EXPECT_THAT(reasons(folder_.at("none.so")), ElementsAre("plugin.path"));
  ASSERT_EQ(mkfifo(folder_.at("pipe.so").c_str(), 0600), 0);
  EXPECT_THAT(reasons(folder_.at("pipe.so")), ElementsAre("trust.kind"));
  EXPECT_THAT(reasons_of(open_folder(folder_.at("b.so"), rules_)), ElementsAre("trust.kind"));
}

}  // namespace
}  // namespace opmux::plugin
