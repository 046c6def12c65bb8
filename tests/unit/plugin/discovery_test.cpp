#include "plugin/discover/discovery.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class Discovery : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "opmux_discovery_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void touch(const std::string& name) { std::ofstream(folder_ / name) << "x"; }
  fs::path folder_;
};

TEST_F(Discovery, lists_shared_libraries_in_bytewise_order) {
  for (const char* name : {"b.so", "a.so", "B.so", "a10.so", "a9.so"}) touch(name);
  const auto at = [&](const char* name) { return (folder_ / name).string(); };
  EXPECT_THAT(list_files(folder_, ".so").value(),
              ElementsAre(at("B.so"), at("a.so"), at("a10.so"), at("a9.so"), at("b.so")));
}

TEST_F(Discovery, leaves_out_other_names_and_hidden_ones) {
  for (const char* name : {"a.txt", ".hidden.so", "a.so.1", "so"}) touch(name);
  EXPECT_THAT(list_files(folder_, ".so").value(), IsEmpty());
}

TEST_F(Discovery, says_that_a_folder_does_not_exist) {
  EXPECT_EQ(list_files(folder_ / "none", ".so").error().code(), Code::not_found);
}

TEST_F(Discovery, says_why_a_folder_cannot_be_read) {
  touch("file");
  const auto paths = list_files(folder_ / "file", ".so");
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().reason(), "plugin.folder");
}

TEST_F(Discovery, looks_beside_the_program_if_it_is_part_of_it) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(default_folder(),
            (program.parent_path().parent_path() / "lib" / "opmux" / "backends").string());
}

}  // namespace
}  // namespace opmux::plugin
