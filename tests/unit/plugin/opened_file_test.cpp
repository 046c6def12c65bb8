#include "plugin/open/opened_file.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "plugin/open/opened_file.hpp"
#include "plugin/probe/probe.hpp"
#include "private_folder.hpp"

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;

/// Files with unique bytes, so that they have not been opened before.
class OpenedFileTest : public testing::Test {
 protected:
  std::string put(const std::string& from, const std::string& name) {
    const std::string path = folder_.at(name);
    fs::create_directories(fs::path(path).parent_path());
    fs::copy_file(from, path);
    std::ofstream(path, std::ios::app) << path;
    return path;
  }
  std::string put_plugin(const std::string& name) {
    return put(std::string(OPMUX_TEST_PLUGINS) + "/" + name + ".so", name + ".so");
  }

  PrivateFolder folder_;
};

std::string known_as(const OpenedFile& opened) {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(opened.query), &info) != 0 ? info.dli_fname : "";
}

TEST_F(OpenedFileTest, is_known_to_the_system_by_its_path) {
  const std::string path = put_plugin("good");
  const CheckedFile file = check_file(path, {}).value();
  const OpenedFile opened = open_once(file).value();
  EXPECT_EQ(known_as(opened), file.path);
}

TEST_F(OpenedFileTest, a_sealed_copy_is_known_by_its_descriptor) {
  const CheckedFile file = check_file(put_plugin("good"), {}).value();
  const OpenedFile opened = open_once(file, sealed_copy(file).value()).value();
  EXPECT_TRUE(known_as(opened).starts_with("/proc/")) << known_as(opened);
}

TEST_F(OpenedFileTest, is_the_checked_file_even_if_its_path_was_replaced) {
  const std::string path = put_plugin("good"), other = put_plugin("no_query");
  const CheckedFile file = check_file(path, {}).value();
  fs::rename(other, path);
  EXPECT_TRUE(open_once(file)) << "another file in its place is not opened";
}

TEST_F(OpenedFileTest, is_refused_if_it_was_written_since) {
  const std::string path = put_plugin("good");
  const CheckedFile file = check_file(path, {}).value();
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_EQ(open_once(file).error().reason(), "trust.changed");
}

TEST_F(OpenedFileTest, files_one_after_the_other_do_not_share_a_number) {
  const OpenedFile first = open_once(check_file(put_plugin("good"), {}).value()).value();
  const OpenedFile second = open_once(check_file(put_plugin("goes"), {}).value()).value();
  EXPECT_NE(first.query, second.query);
}

TEST_F(OpenedFileTest, a_number_that_is_used_again_is_not_taken_for_the_library_that_had_it) {
  const std::string path = put_plugin("good"), other = put_plugin("goes");
  const int number = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(open_library({path, number}));
  const base::Descriptor second(open(other.c_str(), O_RDONLY | O_CLOEXEC));
  dup3(second.get(), number, O_CLOEXEC);
  EXPECT_EQ(open_library({other, number}).error().reason(), "plugin.swapped");
}

TEST_F(OpenedFileTest, is_closed_with_its_last_owner_and_can_be_opened_again) {
  const CheckedFile file = check_file(put_plugin("goes"), {}).value();
  for (int i = 0; i < 2; ++i) {
    const OpenedFile opened = open_once(file).value();
    EXPECT_EQ(known_as(opened), file.path);
  }
}

TEST_F(OpenedFileTest, finds_the_libraries_beside_it) {
  const std::string from(OPMUX_TEST_ELF);
  fs::create_directory(folder_.at("libs"));
  fs::copy_file(from + "/libs/libopmux_test_beside.so", folder_.at("libs/libopmux_test_beside.so"));
  const CheckedFile file = check_file(put(from + "/beside.so", "beside.so"), {}).value();
  ASSERT_EQ(file.libraries.size(), 1u);
  EXPECT_EQ(file.libraries[0].path, folder_.at("libs/libopmux_test_beside.so"));
  const ProbeResult verdict = probe(probe_program(), library_file(file));
  EXPECT_TRUE(verdict.ok()) << verdict.text;
  const Result<OpenedFile> opened = open_once(file);
  EXPECT_TRUE(opened) << opened.error().message();
}

TEST_F(OpenedFileTest, says_by_its_path_which_library_is_missing) {
  const CheckedFile file =
      check_file(put(std::string(OPMUX_TEST_ELF) + "/beside.so", "alone.so"), {}).value();
  const Result<OpenedFile> opened = open_once(file);
  EXPECT_EQ(opened.error().reason(), "plugin.open");
  EXPECT_NE(opened.error().message().find(file.path), std::string_view::npos);
  EXPECT_NE(opened.error().message().find("libopmux_test_beside.so"), std::string_view::npos);
}

}  // namespace
}  // namespace opmux::plugin
