#include "plugin/trust/checked_file.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crypto.hpp"
#include "private_folder.hpp"

namespace opmux::plugin {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CheckFile : public testing::Test {
 protected:
  /// A copy of a valid plugin.
  std::string good() { return folder_.write("good.so", bytes_of(OPMUX_TEST_PLUGINS "/good.so")); }
  PrivateFolder folder_;
  TrustSettings settings_;
};

TEST_F(CheckFile, reports_the_file_contents) {
  const std::string path = good();
  const auto file = check_file(path, settings_);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->path, path);
  EXPECT_EQ(file->identity.size, std::filesystem::file_size(path));
  EXPECT_EQ(file->identity, identity_of(file->descriptor.get()).value());
  EXPECT_THAT(file->digest, SizeIs(64));
  EXPECT_THAT(file->warnings, IsEmpty());
}

TEST_F(CheckFile, refuses_a_path_that_others_can_write_to_or_warns) {
  const std::string path = good();
  chmod(path.c_str(), 0666);
  const auto refused = check_file(path, settings_);
  EXPECT_EQ(refused.error().reason(), "trust.mode");
  EXPECT_EQ(check_of(refused.error().reason()), "path");
  settings_.paths = TrustSettings::Paths::reported;
  const auto file = check_file(path, settings_);
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_THAT(file->warnings, SizeIs(1));
  EXPECT_EQ(file->warnings[0].reason(), "trust.mode");
}

TEST_F(CheckFile, refuses_a_file_that_is_too_large_without_reading_it) {
  const std::string path = good();
  settings_.max_bytes = std::filesystem::file_size(path) - 1;
  EXPECT_EQ(check_file(path, settings_).error().reason(), "trust.size");
  settings_.max_bytes += 1;
  EXPECT_TRUE(check_file(path, settings_));
}

TEST_F(CheckFile, takes_only_listed_digests_if_asked_to) {
  const std::string path = good();
  PluginOptions options;
  options.trust = Trust::digest;
  const auto refused = check_file(path, trust_settings(options));
  EXPECT_EQ(refused.error().reason(), "trust.digest");
  EXPECT_EQ(check_of(refused.error().reason()), "contents");
  std::string digest = check_file(path, settings_).value().digest;
  EXPECT_THAT(refused.error().message(), HasSubstr(digest));
  for (char& c : digest) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  options.digests = {std::string(64, '0'), digest};
  EXPECT_TRUE(check_file(path, trust_settings(options)));
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_EQ(check_file(path, trust_settings(options)).error().reason(), "trust.digest");
}

TEST(Digest, is_the_sha256_of_the_standard) {
  EXPECT_EQ(base::sha256_hex(std::as_bytes(std::span("abc", 3))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace opmux::plugin
