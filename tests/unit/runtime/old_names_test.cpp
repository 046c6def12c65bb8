#include "stage.hpp"
#include "temporary_folder.hpp"

// The functions of Runtime that are in its parts now still compile under their old names. This file
// calls all of them on purpose, so the warnings about that are off.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct OldNamesTest : testing::Test {
  std::string runs() {
    return ran_by([&] { EXPECT_TRUE(copy(rows.y, rows.x).ok()); });
  }
  static Options options(const TemporaryFolder& folder) {
    Options made = bare();
    made.state.folder = folder.at("state");
    made.state.crash_journal = CrashJournal::on;
    made.record.folder = folder.at("calls");
    return made;
  }
  static std::string denying(const std::string& id) {
    return "opmux: 1\nrules: [{op: copy, deny: [" + id + "]}]\n";
  }

  TemporaryFolder folder;
  Rows rows{2, 32};
  Stage stage{options(folder)};
  Runtime& runtime = stage.runtime;
  Operator copy = define_three_copies(stage);
};

TEST_F(OldNamesTest, set_and_remove_the_policy_in_code) {
  ASSERT_TRUE(runtime.set_policy({.prefer = {"copy/c.x"}}).ok());
  EXPECT_EQ(runs(), "copy/c.x");
  EXPECT_THAT(runtime.policy().get().prefer, ElementsAre("copy/c.x"));
  const Policy converted = runtime.policy();
  EXPECT_THAT(converted.prefer, ElementsAre("copy/c.x"));
  ASSERT_TRUE(runtime.reset_policy().ok());
  EXPECT_EQ(runs(), "copy/a.x");
}

TEST_F(OldNamesTest, load_policy_texts_and_go_back) {
  std::vector<std::string> heard;
  runtime.on_policy([&](const PolicyChange& change) {
    heard.push_back(change.name + " " + std::string(change.status.reason()));
  });
  runtime.add_validator([](const Policy& next) {
    return next.rules.empty() ? Status(Code::invalid_argument, "fleet.empty", "no rules")
                              : Status();
  });
  ASSERT_TRUE(runtime.load_policy(denying("copy/a.x"), "no_a").ok());
  EXPECT_EQ(runs(), "copy/b.x");
  ASSERT_TRUE(runtime.load_policy(denying("copy/b.x"), "no_b").ok());
  EXPECT_EQ(runtime.load_policy("opmux: 1\n", "empty").reason(), "fleet.empty");
  EXPECT_EQ(runtime.policy_state().name, "no_b");
  EXPECT_EQ(runs(), "copy/a.x");
  ASSERT_TRUE(runtime.rollback().ok());
  EXPECT_EQ(runs(), "copy/b.x");
  EXPECT_EQ(to_json(runtime.policy_state()), to_json(runtime.policy().state()));
  EXPECT_THAT(heard, ElementsAre("no_a ", "no_b ", "empty fleet.empty", "no_a "));
}

TEST_F(OldNamesTest, check_and_compare_policy_texts) {
  const Runtime& reader = runtime;
  const std::string from = denying("copy/a.x"), to = denying("copy/b.x");
  const PolicyCheck check = reader.check_policy(from, "no_a").value();
  ASSERT_EQ(check.changes.size(), 1u);
  EXPECT_EQ(check.changes[0].after, "copy/b.x");
  const std::vector<ChoiceChange> changes =
      reader.compare_policies(from, "no_a", to, "no_b").value();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].to, "copy/a.x");
  EXPECT_EQ(changes, reader.policy().compare(from, "no_a", to, "no_b").value());
}

TEST_F(OldNamesTest, lock_and_freeze) {
  EXPECT_EQ(runs(), "copy/a.x");
  const Runtime& reader = runtime;
  const Lockfile lock = reader.lock();
  ASSERT_EQ(lock.choices.size(), 1u);
  EXPECT_EQ(lock.choices, reader.lockfile().current().choices);
  EXPECT_TRUE(reader.check_lock(lock).ok());
  EXPECT_FALSE(reader.frozen());
  ASSERT_TRUE(runtime.freeze(lock).ok());
  EXPECT_TRUE(reader.frozen());
  EXPECT_TRUE(reader.lockfile().frozen());
  EXPECT_EQ(runtime.freeze().value().choices, lock.choices);
  EXPECT_EQ(runtime.set_policy({.prefer = {"copy/c.x"}}).code(), Code::frozen);
}

TEST_F(OldNamesTest, list_plugins_and_switch_backends) {
  const std::vector<PluginInfo> plugins = runtime.plugins();
  ASSERT_EQ(plugins.size(), 1u);
  EXPECT_EQ(plugins[0].path, "built in");
  runtime.warm_up();
  ASSERT_TRUE(runtime.enable_backend("a", false).ok());
  EXPECT_EQ(runs(), "copy/b.x");
  const Runtime& reader = runtime;
  EXPECT_EQ(reader.device_access("reference").error().reason(), "device.none");
}

TEST_F(OldNamesTest, report_health_and_isolate_an_implementation) {
  std::vector<std::string> heard;
  runtime.on_breaker([&](const BreakerEvent& event) {
    heard.push_back(event.implementation + " " + std::string(name_of(event.to)));
  });
  ASSERT_TRUE(runtime.force_breaker("copy/a.x", BreakerForce::isolate).ok());
  EXPECT_THAT(heard, ElementsAre("copy/a.x isolated"));
  const Runtime& reader = runtime;
  const HealthReport converted = reader.health();
  EXPECT_EQ(converted.breakers.at(0).state, BreakerState::isolated);
  EXPECT_EQ(to_json(reader.health()), to_json(reader.health().report()));
  EXPECT_THAT(reader.device_errors(), IsEmpty());
  EXPECT_THAT(reader.lost_devices(), IsEmpty());
}

TEST_F(OldNamesTest, read_the_crash_journal_and_the_recorded_calls) {
  const Runtime& reader = runtime;
  EXPECT_TRUE(reader.crash_journal().on);
  EXPECT_EQ(reader.crash_journal().path, reader.health().crash_journal().path);
  EXPECT_THAT(reader.quarantine().entries, IsEmpty());
  EXPECT_EQ(runtime.clear_quarantine().value(), 0u);
  EXPECT_EQ(reader.recordings().folder, folder.at("calls"));
  EXPECT_EQ(runtime.replay(folder.at("missing"), {}).error().reason(), "replay.file");
}

}  // namespace
}  // namespace opmux::test

#pragma GCC diagnostic pop
