#include "policy/files/last_good.hpp"

#include <sys/stat.h>

#include "temporary_folder.hpp"

namespace opmux::policy {
namespace {

using test::TemporaryFolder;
using test::write_file;

TEST(LastGood, returns_the_policy_stored_for_the_same_path) {
  const TemporaryFolder folder;
  const LastGood kept(folder.at("store"), "policy.yaml"), other(folder.at("store"), "other.yaml");
  EXPECT_EQ(kept.read().error().reason(), "config.last_good");
  const std::vector<FileText> files{{"a.yaml", "opmux: 1\n\n3 x\n"}, {"b b.yaml", ""}};
  ASSERT_EQ(kept.keep(files).value(), LastGood::Kept::yes);
  EXPECT_EQ(kept.read().value(), files);
  EXPECT_FALSE(other.read());
  ASSERT_TRUE(kept.keep({{"a.yaml", "new"}}));
  EXPECT_EQ(kept.read().value(), (std::vector<FileText>{{"a.yaml", "new"}}));
  struct stat made{};
  ASSERT_EQ(::stat(folder.at("store").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u);
}

TEST(LastGood, reads_files_that_an_earlier_version_stored) {
  const TemporaryFolder folder;
  const LastGood kept(folder.at("store"), "policy.yaml");
  const std::vector<FileText> files{{"a.yaml", "opmux: 1\n"}, {"b b.yaml", ""}};
  ASSERT_TRUE(kept.keep(files));
  const std::string stored =
      "opmux last known good 1\n"
      "d5dc63fa5e72fad4ff9688564e7ce92f8aa40b064980ee6d8c501a6d7cb54246\n"
      "9 a.yaml\nopmux: 1\n\n0 b b.yaml\n\n";
  EXPECT_EQ(read_policy_file(kept.path()).value().text, stored);
  write_file(kept.path(), stored);
  EXPECT_EQ(kept.read().value(), files);
}

TEST(LastGood, refuses_a_damaged_file) {
  const TemporaryFolder folder;
  const LastGood kept(folder.at("store"), "policy.yaml");
  ASSERT_TRUE(kept.keep({{"a.yaml", "text"}}));
  ASSERT_TRUE(kept.read());
  std::string bytes = read_policy_file(kept.path()).value().text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] ^= 1;
    write_file(kept.path(), other);
    EXPECT_FALSE(kept.read()) << "byte " << i;
    write_file(kept.path(), bytes.substr(0, i));
    EXPECT_FALSE(kept.read()) << "only " << i << " bytes";
  }
}

TEST(LastGood, keeps_nothing_in_a_folder_that_others_can_write) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.at("store"));
  ::chmod(folder.at("store").c_str(), 0770);
  const Status status =
      LastGood(folder.at("store"), "policy.yaml").keep({{"a.yaml", "text"}}).error();
  EXPECT_NE(status.message().find("mode 0700"), std::string_view::npos);
  EXPECT_FALSE(LastGood("", "policy.yaml").keep({{"a.yaml", "text"}}));
}

}  // namespace
}  // namespace opmux::policy
