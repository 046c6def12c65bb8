#include "policy/files/policy_file_watcher.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>

#include "forked.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using policy::Mode;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::string preferring(const std::string& kind) {
  return "opmux: 1\ndefaults: {prefer: [" + kind + "]}\n";
}

struct FollowedFilesTest : testing::Test {
  Options options() const {
    Options made = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
    made.sources.config = config();
    made.sources.own_thread = false;
    return made;
  }
  std::string config() const { return folder.at("policy.yaml"); }
  TemporaryFolder folder;
};

TEST_F(FollowedFilesTest, mode_depends_on_the_configured_sources) {
  const auto mode = [&](SourceOptions options, std::string word) {
    policy::Environment environment;
    environment.mode = std::move(word);
    const auto found = policy::mode_of(options, environment);
    return found ? std::string(name_of(found->kind)) : std::string(found.error().reason());
  };
  write_file(config(), preferring("vendor"));
  EXPECT_EQ(mode({}, ""), "dynamic");
  EXPECT_EQ(mode({.config = config()}, ""), "hot_reload");
  EXPECT_EQ(mode({.config = config()}, "config"), "config");
  EXPECT_EQ(mode({.mode = "config", .config = config()}, "hot_reload"), "config");
  EXPECT_EQ(mode({}, "config"), "mode.files");
  EXPECT_EQ(mode({.config = config()}, "dynamic"), "mode.files");
  EXPECT_EQ(mode({.config = config()}, "static"), "mode.files");
  EXPECT_EQ(mode({.mode = "hotreload"}, ""), "mode.value");
  write_file(folder.at("opmux.lock"), "");
  EXPECT_EQ(mode({.config = config()}, ""), "static");
  EXPECT_EQ(mode({.config = config()}, "config"), "config");
}

TEST_F(FollowedFilesTest, a_file_that_others_can_write_is_reported) {
  std::vector<std::string> texts;
  const auto warnings = [&] {
    texts.clear();
    Options made = options();
    made.sink = [&](const Event& event) {
      if (event.code == "policy.writable_by_others") texts.push_back(event.text);
    };
    EXPECT_TRUE(Runtime::create(std::move(made)));
    return texts.size();
  };
  write_file(config(), preferring("vendor"));
  EXPECT_EQ(warnings(), 0u);
  ASSERT_EQ(::chmod(config().c_str(), 0666), 0);
  EXPECT_EQ(warnings(), 1u);
  EXPECT_THAT(texts, testing::ElementsAre(HasSubstr(config())));
  ASSERT_EQ(::chmod(config().c_str(), 0644), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(warnings(), 1u) << "others can replace the file";
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  EXPECT_EQ(warnings(), 0u);
}

TEST_F(FollowedFilesTest, a_file_is_read_at_the_start_and_reported_in_force) {
  write_file(config(), preferring("vendor"));
  const Runtime runtime = Runtime::create(options()).value();
  EXPECT_EQ(setting(runtime, "prefer"), "vendor <- prefer (" + config() + ")");
  EXPECT_EQ(setting(runtime, "mode"), "hot_reload <- built-in, auto");
  EXPECT_EQ(setting(runtime, "file.version"), "1 <- file");
}

TEST_F(FollowedFilesTest, a_relative_path_is_resolved_against_the_initial_working_directory) {
  write_file(config(), preferring("vendor"));
  Options made = options();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.at(""));
  made.sources.config = "policy.yaml";
  auto runtime = Runtime::create(made);
  std::filesystem::current_path(before);
  ASSERT_TRUE(runtime) << runtime.error().to_string();
  EXPECT_EQ(runtime->policy().state().name, std::filesystem::canonical(config()).native());
  runtime->tick(milliseconds(1000));
  write_file(config(), preferring("reference"));
  runtime->tick(milliseconds(1100));
  runtime->tick(milliseconds(1200));
  EXPECT_THAT(setting(*runtime, "prefer"), HasSubstr("reference"));
}

TEST_F(FollowedFilesTest, the_platform_is_weaker_than_the_environment) {
  write_file(folder.at("platform.yaml"), preferring("vendor"));
  Options made = bare({{"OPMUX_PLATFORM", folder.at("platform.yaml")}});
  EXPECT_THAT(setting(Runtime::create(made).value(), "prefer"), HasSubstr("platform.yaml"));
  made.environment->emplace_back("OPMUX_PREFER", "reference");
  EXPECT_EQ(setting(Runtime::create(made).value(), "prefer"),
            "reference <- OPMUX_PREFER (environment)");
  made.environment = {{{"OPMUX_PLATFORM", "no_such_machine"}}};
  EXPECT_EQ(Runtime::create(made).error().reason(), "config.platform");
}

TEST_F(FollowedFilesTest, an_invalid_file_at_the_start_is_an_error_with_its_position) {
  write_file(config(), "opmux: 1\ndefaults: {perfer: [vendor]}\n");
  const Status refused = Runtime::create(options()).error();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("policy.yaml:2:"));
}

TEST_F(FollowedFilesTest, starts_with_the_last_known_good_policy_and_logs_it) {
  write_file(config(), preferring("vendor"));
  ASSERT_TRUE(Runtime::create(options()));
  write_file(config(), "opmux: 1\ndefaults: {perfer: [vendor]}\n");
  std::vector<std::string> codes;
  Options made = options();
  made.sink = [&](const Event& event) { codes.push_back(event.code); };
  const Runtime runtime = Runtime::create(made).value();
  EXPECT_THAT(setting(runtime, "prefer"), HasSubstr("vendor"));
  EXPECT_EQ(setting(runtime, "file.version"), "1 <- last known good");
  EXPECT_THAT(setting(runtime, "file.refused"), HasSubstr("policy.yaml:2:"));
  EXPECT_EQ(runtime.policy().state().refused, 1u);
  EXPECT_THAT(codes, testing::IsSupersetOf({"policy.refused", "policy.last_known_good"}));
  made.sources.last_known_good = false;
  EXPECT_FALSE(Runtime::create(made));
}

TEST_F(FollowedFilesTest, a_full_disk_is_logged_once_and_policies_come_into_force) {
  write_file(config(), preferring("vendor"));
  EXPECT_TRUE(true_in_forked_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const auto leave_room = [](rlim_t bytes) {
      const rlimit limit{bytes, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    };
    int told = 0, now = 1000;
    Options made = options();
    made.sink = [&](const Event& event) { told += event.code == "policy.not_kept" ? 1 : 0; };
    leave_room(0);
    auto runtime = Runtime::create(made);
    bool well = runtime && setting(*runtime, "prefer").starts_with("vendor");
    for (const char* word : {"reference", "default", "vendor"}) {
      leave_room(RLIM_INFINITY);
      write_file(config(), preferring(word));
      leave_room(0);
      for (int i = 0; well && i < 4; ++i) runtime->tick(milliseconds(now += 100));
      well = well && setting(*runtime, "prefer").starts_with(word);
    }
    return well && told == 1;
  }));
}

TEST_F(FollowedFilesTest, files_of_a_folder_are_one_list) {
  std::filesystem::create_directory(folder.at("d"));
  write_file(folder.at("d/b.yaml"), "opmux: 1\nrules:\n  - {op: rms_norm, strict: true}\n");
  write_file(folder.at("d/a.json"),
             R"({"opmux": 1, "rules": [{"op": "softmax", "strict": true}]})");
  Options made = options();
  made.sources.config = folder.at("d");
  const Runtime runtime = Runtime::create(made).value();
  EXPECT_EQ(runtime.policy().state().rules, 2u);
  write_file(folder.at("d/c.yaml"), "opmux: 1\nrules:\n  - {op: rms_nrom, strict: true}\n");
  made.sources.last_known_good = false;
  EXPECT_THAT(std::string(Runtime::create(made).error().message()), HasSubstr("d/c.yaml:3:"));
  write_file(folder.at("d/c.yaml"), preferring("vendor"));
  write_file(folder.at("d/d.yaml"), preferring("reference"));
  EXPECT_EQ(Runtime::create(made).error().reason(), "policy.said_twice");
}

TEST_F(FollowedFilesTest, a_change_comes_into_force_when_it_has_been_quiet_and_not_before) {
  write_file(config(), preferring("vendor"));
  Runtime runtime = Runtime::create(options()).value();
  const auto tick = [&](int at) { runtime.tick(milliseconds(at)); };
  tick(1000);
  tick(1100);
  write_file(config(), preferring("reference"));
  tick(1200);
  tick(1240);
  EXPECT_THAT(setting(runtime, "prefer"), HasSubstr("vendor"));
  tick(1250);
  EXPECT_THAT(setting(runtime, "prefer"), HasSubstr("reference"));
  EXPECT_EQ(runtime.policy().state().version, 2u);
  tick(2000);
  EXPECT_EQ(runtime.policy().state().loaded, 2u);
}

TEST_F(FollowedFilesTest, an_invalid_or_removed_file_is_logged_once_and_changes_nothing) {
  write_file(config(), preferring("vendor"));
  Runtime runtime = Runtime::create(options()).value();
  std::vector<std::string> heard;
  runtime.policy().on_change(
      [&](const PolicyChange& change) { heard.emplace_back(change.status.reason()); });
  int now = 1000;
  const auto settle = [&] {
    for (int i = 0; i < 4; ++i) runtime.tick(milliseconds(now += 100));
  };
  settle();
  write_file(config(), "opmux: 1\nrules: 5\n");
  settle();
  std::filesystem::remove(config());
  settle();
  settle();
  write_file(config(), preferring("reference"));
  settle();
  EXPECT_THAT(heard, testing::ElementsAre("policy.type", "config.file", ""));
  EXPECT_THAT(setting(runtime, "prefer"), HasSubstr("reference"));
}

TEST_F(FollowedFilesTest, a_forked_child_watches_the_file_independently) {
  if (under_thread_sanitizer()) GTEST_SKIP() << "it cannot follow threads of a child";
  write_file(config(), preferring("vendor"));
  Options made = options();
  made.sources.own_thread = true;
  Runtime runtime = Runtime::create(made).value();
  const Rows t;
  ASSERT_TRUE(runtime.call("rms_norm", t.y, t.x, t.w).ok());
  EXPECT_TRUE(true_in_forked_child([&] {
    std::atomic<bool> heard{false};
    runtime.policy().on_change([&](const PolicyChange&) {
      heard.store(true);
      heard.notify_all();
    });
    const Rows other(2, 16);
    PolicyScope cold(runtime, {.require = {"reference"}});
    if (!runtime.call("rms_norm", other.y, other.x, other.w).ok()) return false;
    write_file(config(), preferring("reference"));
    heard.wait(false);
    return runtime.policy().state().version == 2;
  }));
}

}  // namespace
}  // namespace opmux::test
