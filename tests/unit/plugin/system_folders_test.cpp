#include "plugin/trust/dependencies.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "temporary_folder.hpp"

namespace opmux::plugin {
namespace {

using testing::ElementsAre;

std::vector<std::string> configured(const std::string& path) {
  const std::vector<std::string> all = system_folders(path);
  EXPECT_GE(all.size(), 4u);
  return {all.begin() + 4, all.end()};
}

TEST(SystemFolders, follow_the_patterns_of_included_files) {
  const test::TemporaryFolder folder;
  const std::string at = folder.path();
  for (const char* const name : {"one.d", "two.d", ".hidden.d"})
    std::filesystem::create_directory(folder.at(name));
  test::write_file(folder.at("one.d/b.conf"), "/opt/b  # a comment\n\n/opt/second\n");
  test::write_file(folder.at("one.d/a.conf"), "\t/opt/a\nrelative\n");
  test::write_file(folder.at("one.d/.c.conf"), "/opt/hidden\n");
  test::write_file(folder.at("one.d/readme"), "/opt/readme\n");
  test::write_file(folder.at("two.d/a.conf"), "include " + at + "/plain.conf\n");
  test::write_file(folder.at(".hidden.d/a.conf"), "/opt/hidden\n");
  test::write_file(folder.at("plain.conf"), "/opt/plain\n");
  test::write_file(folder.at("main"), "/opt/first\ninclude " + at + "/*.d/?*.conf\ninclude " + at +
                                          "/absent/*.conf\n");
  EXPECT_THAT(configured(folder.at("main")),
              ElementsAre("/opt/first", "/opt/a", "/opt/b", "/opt/second", "/opt/plain"));
}

TEST(SystemFolders, a_file_that_includes_itself_is_read_a_few_times) {
  const test::TemporaryFolder folder;
  test::write_file(folder.at("main"), "/opt/x\ninclude " + folder.path() + "/ma*\n");
  EXPECT_EQ(configured(folder.at("main")), std::vector<std::string>(8, "/opt/x"));
}

}  // namespace
}  // namespace opmux::plugin
