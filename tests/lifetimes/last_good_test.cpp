#include <sys/stat.h>

#include <optional>

#include "base/system/files.hpp"
#include "policy/files/policy_file_watcher.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using base::FileLock;
using policy::LastGood;
using std::chrono::milliseconds;

/// A runtime with a policy file whose last known good copy other processes may lock.
struct LastGoodLifetime : testing::Test {
  static std::string text_for(const std::string& kind) {
    return "opmux: 1\ndefaults: {prefer: [" + kind + "]}\n";
  }
  Options options(const std::string& mode) {
    Options made = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
    made.sources.mode = mode;
    made.sources.config = config;
    made.sources.own_thread = false;
    made.sink = [this](const Event& event) { told += event.code == "policy.not_kept" ? 1 : 0; };
    return made;
  }
  /// Takes the lock that a process holds while it stores a policy.
  void lock() {
    ASSERT_TRUE(base::make_private_folder(folder.at("state/store")).ok());
    busy.emplace(last.path() + ".lock", 0);
    ASSERT_TRUE(*busy);
  }
  void unlock() { busy.reset(); }
  void tick(Runtime& runtime, int times = 1) {
    for (int i = 0; i < times; ++i) runtime.tick(now += milliseconds(100));
  }
  /// Writes the file and waits until it is in force.
  void change(Runtime& runtime, const std::string& kind) {
    write_file(config, text_for(kind));
    tick(runtime, 4);
    ASSERT_TRUE(setting(runtime, "prefer").starts_with(kind));
  }
  std::string stored() const {
    const auto files = last.read();
    return files ? files->at(0).text : "";
  }

  TemporaryFolder folder;
  const std::string config = folder.at("policy.yaml");
  const LastGood last{folder.at("state/store"), config};
  std::optional<FileLock> busy;
  std::chrono::nanoseconds now = milliseconds(1000);
  int told = 0;
};

TEST_F(LastGoodLifetime, a_policy_is_stored_when_the_lock_becomes_free) {
  write_file(config, text_for("vendor"));
  lock();
  Runtime runtime = Runtime::create(options("hot_reload")).value();
  tick(runtime, 3);
  EXPECT_EQ(stored(), "");
  unlock();
  tick(runtime);
  EXPECT_EQ(stored(), text_for("vendor"));
  for (const char* kind : {"reference", "default"}) {
    lock();
    change(runtime, kind);
    EXPECT_NE(stored(), text_for(kind));
    unlock();
    tick(runtime);
    EXPECT_EQ(stored(), text_for(kind));
  }
  EXPECT_EQ(told, 0);
}

TEST_F(LastGoodLifetime, the_newest_policy_is_stored_of_several_that_met_a_busy_lock) {
  write_file(config, text_for("vendor"));
  Runtime runtime = Runtime::create(options("hot_reload")).value();
  tick(runtime);
  lock();
  change(runtime, "reference");
  change(runtime, "default");
  EXPECT_EQ(stored(), text_for("vendor"));
  unlock();
  tick(runtime);
  EXPECT_EQ(stored(), text_for("default"));
}

TEST_F(LastGoodLifetime, a_policy_that_is_read_once_is_stored_later_too) {
  write_file(config, text_for("vendor"));
  lock();
  Runtime runtime = Runtime::create(options("config")).value();
  tick(runtime);
  EXPECT_EQ(stored(), "");
  unlock();
  tick(runtime);
  EXPECT_EQ(stored(), text_for("vendor"));
}

TEST_F(LastGoodLifetime, a_policy_that_is_stored_already_needs_no_lock) {
  write_file(config, text_for("vendor"));
  ASSERT_TRUE(Runtime::create(options("config")));
  lock();
  const std::vector<policy::FileText> files = last.read().value();
  EXPECT_EQ(last.keep(files).value(), LastGood::Kept::yes);
  EXPECT_EQ(last.keep({{config, "other"}}).value(), LastGood::Kept::busy);
}

TEST_F(LastGoodLifetime, a_lock_that_stays_busy_is_logged_once_after_ten_seconds) {
  write_file(config, text_for("vendor"));
  lock();
  Runtime runtime = Runtime::create(options("config")).value();
  tick(runtime, 100);
  EXPECT_EQ(told, 0);
  tick(runtime, 100);
  EXPECT_EQ(told, 1);
  unlock();
  tick(runtime);
  EXPECT_EQ(stored(), text_for("vendor"));
  EXPECT_EQ(told, 1);
}

TEST_F(LastGoodLifetime, a_policy_is_stored_after_an_earlier_one_could_not_be) {
  write_file(config, text_for("vendor"));
  const std::string store = folder.at("state/store");
  ASSERT_TRUE(base::make_private_folder(store).ok());
  ASSERT_EQ(::chmod(store.c_str(), 0770), 0);
  Runtime runtime = Runtime::create(options("hot_reload")).value();
  change(runtime, "reference");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(stored(), "");
  ASSERT_EQ(::chmod(store.c_str(), 0700), 0);
  change(runtime, "default");
  EXPECT_EQ(stored(), text_for("default"));
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace opmux::test
