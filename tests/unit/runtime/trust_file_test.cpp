#include "base/system/trust_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A policy file and a trust file, and the events of the runtimes that read them.
struct TrustFileRuntimeTest : testing::Test {
  TrustFileRuntimeTest() {
    ::chmod(folder.path().c_str(), 0755);
    write("policy.yaml", "opmux: 1\ndefaults: {prefer: [vendor]}\n");
  }
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    write_file(folder.at(name), text);
    ::chmod(folder.at(name).c_str(), mode);
  }
  void let_others_write(mode_t mode = 0666) const {
    ASSERT_EQ(::chmod(folder.at("policy.yaml").c_str(), mode), 0);
  }
  Options options() {
    Options made = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
    made.sources.config = folder.at("policy.yaml");
    made.sources.own_thread = false;
    made.sink = [this](const Event& event) {
      if (event.level >= Level::warning) events.push_back(event.code);
    };
    return made;
  }
  Result<std::unique_ptr<runtime::Core>> create(const Options& made) {
    events.clear();
    return runtime::Core::create(made, {folder.at("trust.conf"), ::geteuid()});
  }
  /// "ok", or the reason why the runtime could not be created.
  std::string outcome(const Options& made) {
    const auto core = create(made);
    return core ? "ok" : std::string(core.error().reason());
  }
  std::string outcome() { return outcome(options()); }

  TemporaryFolder folder;
  std::vector<std::string> events;
};

TEST_F(TrustFileRuntimeTest, warns_of_a_policy_that_others_can_write_unless_told_to_refuse) {
  EXPECT_EQ(outcome(), "ok");
  EXPECT_THAT(events, IsEmpty());
  let_others_write();
  EXPECT_EQ(outcome(), "ok");
  EXPECT_THAT(events, ElementsAre("policy.writable_by_others"));
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  EXPECT_EQ(outcome(careful), "policy.writable_by_others");
}

TEST_F(TrustFileRuntimeTest, refuses_a_policy_that_a_group_can_write_without_warning_of_it) {
  let_others_write(0664);
  EXPECT_EQ(outcome(), "ok");
  EXPECT_THAT(events, IsEmpty());
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  EXPECT_EQ(outcome(careful), "policy.writable_by_others");
}

TEST_F(TrustFileRuntimeTest, refuses_a_policy_behind_a_link_in_a_folder_of_others) {
  std::filesystem::create_directory(folder.at("shared"));
  std::filesystem::create_symlink("../policy.yaml", folder.at("shared/link.yaml"));
  std::filesystem::create_symlink("shared/link.yaml", folder.at("policy_link.yaml"));
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  careful.sources.config = folder.at("policy_link.yaml");
  EXPECT_EQ(outcome(careful), "ok");
  ASSERT_EQ(::chmod(folder.at("shared").c_str(), 0777), 0);
  EXPECT_EQ(outcome(careful), "policy.writable_by_others") << "others can replace the second link";
}

TEST_F(TrustFileRuntimeTest, the_stricter_of_option_and_file_applies) {
  let_others_write();
  write("trust.conf", "policy_trust = refuse\n");
  EXPECT_EQ(outcome(), "policy.writable_by_others");
  write("trust.conf", "policy_trust = warn\n");
  EXPECT_EQ(outcome(), "ok");
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  EXPECT_EQ(outcome(careful), "policy.writable_by_others") << "the file does not weaken the option";
}

TEST_F(TrustFileRuntimeTest, a_policy_cannot_set_it) {
  write("policy.yaml", "opmux: 1\npolicy_trust: warn\n");
  Options made = options();
  made.sources.last_known_good = false;
  EXPECT_EQ(outcome(made), "policy.unknown_key");
}

TEST_F(TrustFileRuntimeTest, a_file_that_others_can_write_closes_everything_and_is_reported) {
  let_others_write();
  write("trust.conf", "policy_trust = warn\n", 0666);
  EXPECT_EQ(outcome(), "policy.writable_by_others");
  EXPECT_THAT(events, testing::Contains("trust.file"));
  let_others_write(0644);
  EXPECT_EQ(outcome(), "ok") << "the runtime itself starts";
  EXPECT_THAT(events, ElementsAre("trust.file"));
}

TEST_F(TrustFileRuntimeTest, a_changed_policy_that_others_can_write_does_not_come_into_force) {
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  auto core = create(careful).value();
  core->tick(1'000'000'000);
  write("policy.yaml", "opmux: 1\ndefaults: {prefer: [reference]}\n", 0666);
  core->tick(2'000'000'000);
  core->tick(3'000'000'000);
  const PolicyState state = core->sources().state();
  EXPECT_EQ(state.refused, 1u);
  EXPECT_EQ(state.last_refusal.reason(), "policy.writable_by_others");
  EXPECT_THAT(core->sources().set()->layers, testing::Not(IsEmpty()));
  EXPECT_EQ(state.version, 1u) << "the first policy stays in force";
  ASSERT_EQ(::chmod(folder.at("policy.yaml").c_str(), 0644), 0);
  core->tick(4'000'000'000);
  core->tick(5'000'000'000);
  EXPECT_EQ(core->sources().state().version, 2u);
}

TEST_F(TrustFileRuntimeTest, a_refused_policy_is_not_replaced_by_a_stored_copy_of_it) {
  let_others_write();
  EXPECT_EQ(outcome(), "ok") << "this run stores the policy as last known good";
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  EXPECT_EQ(outcome(careful), "policy.writable_by_others");
}

TEST_F(TrustFileRuntimeTest, a_platform_file_and_a_lockfile_are_policy_files) {
  Options careful = options();
  careful.policy_trust = PolicyTrust::refuse;
  careful.sources.config = {};
  careful.sources.platform = folder.at("policy.yaml");
  EXPECT_EQ(outcome(careful), "ok");
  let_others_write();
  EXPECT_EQ(outcome(careful), "policy.writable_by_others");
  careful.sources.platform = {};
  careful.sources.mode = "static";
  careful.sources.lockfile = folder.at("opmux.lock");
  write("opmux.lock", Runtime::create(bare()).value().lockfile().freeze().value().to_string());
  EXPECT_EQ(outcome(careful), "ok");
  ASSERT_EQ(::chmod(folder.at("opmux.lock").c_str(), 0666), 0);
  EXPECT_EQ(outcome(careful), "policy.writable_by_others");
}

TEST_F(TrustFileRuntimeTest, is_shown_among_the_settings) {
  EXPECT_THAT(create(options()).value()->trust_settings(), IsEmpty());
  write("trust.conf", "require_confinement = yes\n");
  const auto lines = create(options()).value()->trust_settings();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].key + "=" + lines[0].value, "trust_file.policy_trust=warn");
  EXPECT_EQ(lines[1].key + "=" + lines[1].value, "trust_file.require_confinement=yes");
  EXPECT_EQ(lines[1].origin, folder.at("trust.conf"));
  write("trust.conf", "?");
  EXPECT_THAT(create(options()).value()->trust_settings().at(1).origin,
              HasSubstr("cannot be used"));
}

}  // namespace
}  // namespace opmux::test
