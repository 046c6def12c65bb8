#include "base/system/trust_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_folder.hpp"

namespace opmux::base {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

std::string problem_of(std::string_view text) {
  const auto rules = parse_trust_rules(text);
  return rules ? "" : std::string(rules.error().message());
}

TEST(TrustRules, are_lines_of_keys_and_values) {
  const auto none = parse_trust_rules("# only a comment\n\n   \t\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->policy_trust, PolicyTrust::warn);
  EXPECT_FALSE(none->require_confinement);
  const auto both = parse_trust_rules("policy_trust=refuse\n\trequire_confinement = yes # why");
  ASSERT_TRUE(both) << both.error().message();
  EXPECT_EQ(both->policy_trust, PolicyTrust::refuse);
  EXPECT_TRUE(both->require_confinement);
  const auto weak = parse_trust_rules("policy_trust = warn\nrequire_confinement = no\n");
  ASSERT_TRUE(weak);
  EXPECT_EQ(weak->policy_trust, PolicyTrust::warn);
  EXPECT_FALSE(weak->require_confinement);
}

TEST(TrustRules, with_a_mistake_are_refused_with_the_line) {
  EXPECT_EQ(problem_of("\npolicy_truth = warn\n"), "line 2: there is no key 'policy_truth'");
  EXPECT_EQ(problem_of("policy_trust\n"), "line 1: a value is missing for 'policy_trust'");
  EXPECT_EQ(problem_of("policy_trust = \n"), "line 1: a wrong value for 'policy_trust'");
  EXPECT_EQ(problem_of("policy_trust = Refuse\n"), "line 1: a wrong value for 'policy_trust'");
  EXPECT_EQ(problem_of("require_confinement = yes\r\n"),
            "line 1: a wrong value for 'require_confinement'");
  EXPECT_EQ(problem_of("policy_trust = refuse\npolicy_trust = warn\n"),
            "line 2: a second value for 'policy_trust'");
  EXPECT_EQ(problem_of("= warn"), "line 1: there is no key ''");
  EXPECT_EQ(problem_of("\x1b[2J = warn"), "line 1: there is no key '\\x1b[2J'");
}

struct TrustFileTest : testing::Test {
  TrustFileTest() {
    ::chmod(folder.path().c_str(), 0755);
    std::filesystem::create_directory(folder.at("opmux"));
  }
  void write(const std::string& text) {
    write_file(path(), text);
    ::chmod(path().c_str(), 0644);
  }
  std::string path() const { return folder.at("opmux/trust.conf"); }
  TrustRules read() const { return read_trust_file({path(), ::geteuid()}); }
  /// Expects the strictest rules, and a problem that contains `why`.
  void expect_strictest(const std::string& why) const {
    const TrustRules rules = read();
    EXPECT_EQ(rules.policy_trust, PolicyTrust::refuse) << why;
    EXPECT_TRUE(rules.require_confinement) << why;
    EXPECT_EQ(rules.file, path());
    EXPECT_EQ(rules.problem.reason(), "trust.file");
    EXPECT_THAT(std::string(rules.problem.message()), HasSubstr(why));
  }
  TemporaryFolder folder;
};

TEST_F(TrustFileTest, that_does_not_exist_has_no_rules) {
  const TrustRules rules = read();
  EXPECT_EQ(rules.policy_trust, PolicyTrust::warn);
  EXPECT_FALSE(rules.require_confinement);
  EXPECT_EQ(rules.file, "");
  EXPECT_TRUE(rules.problem.ok());
}

TEST_F(TrustFileTest, is_read_if_only_its_owner_can_change_it) {
  write("policy_trust = refuse\n");
  const TrustRules rules = read();
  EXPECT_TRUE(rules.problem.ok()) << rules.problem.message();
  EXPECT_EQ(rules.policy_trust, PolicyTrust::refuse);
  EXPECT_FALSE(rules.require_confinement);
  EXPECT_EQ(rules.file, path());
}

TEST_F(TrustFileTest, that_others_can_change_means_the_strictest_rules) {
  write("policy_trust = warn\n");
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    expect_strictest("can be written by other users");
  }
  ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  EXPECT_TRUE(read().problem.ok());
  ASSERT_EQ(::chmod(folder.at("opmux").c_str(), 0777), 0);
  expect_strictest("/opmux can be written by other users");
  ASSERT_EQ(::chmod(folder.at("opmux").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0775), 0);
  expect_strictest(folder.path() + " can be written by other users");
}

TEST_F(TrustFileTest, of_another_user_means_the_strictest_rules) {
  write("policy_trust = warn\n");
  const TrustRules rules = read_trust_file({path(), ::geteuid() + 1});
  EXPECT_EQ(rules.policy_trust, PolicyTrust::refuse);
  EXPECT_THAT(std::string(rules.problem.message()), HasSubstr("it belongs to user "));
  if (::geteuid() != 0) return;  // only root can give files away
  ASSERT_EQ(::chown(folder.at("opmux").c_str(), 65534, 65534), 0);
  expect_strictest("/opmux belongs to user 65534");
}

TEST_F(TrustFileTest, that_is_malformed_means_the_strictest_rules) {
  write("policy_trust = warn\nnonsense\n");
  expect_strictest("line 2: there is no key 'nonsense'");
  write(std::string(70'000, '#'));
  expect_strictest("cannot read");
}

TEST_F(TrustFileTest, that_is_no_file_means_the_strictest_rules) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expect_strictest("it is not a regular file");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  expect_strictest("it is not a regular file");
  std::filesystem::remove(path());
  write_file(folder.at("other"), "policy_trust = warn\n");
  std::filesystem::create_symlink("../other", path());
  expect_strictest("symbolic links");
  std::filesystem::remove(path());
  std::filesystem::remove(folder.at("opmux"));
  write_file(folder.at("opmux"), "");
  expect_strictest("Not a directory");
}

TEST(TrustFile, is_in_etc_and_belongs_to_root) {
  EXPECT_EQ(TrustFile().path, "/etc/opmux/trust.conf");
  EXPECT_EQ(TrustFile().owner, 0u);
}

}  // namespace
}  // namespace opmux::base
