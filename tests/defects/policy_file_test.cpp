#include <chrono>
#include <thread>

#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

std::string text_for(const std::string& provider) {
  return "opmux: 1\nrules:\n  - {op: copy, prefer: [copy/" + provider + ".x]}\n";
}

/// copy implemented by a, b and c; a runs unless a policy says otherwise.
struct Switched : Stage {
  explicit Switched(Options options = bare()) : Stage(std::move(options)), copy(define(kCopy)) {
    add({.id = "copy/a.x", .kind = Kind::default_, .priority = 200});
    add({.id = "copy/b.x", .kind = Kind::default_, .priority = 100});
    add({.id = "copy/c.x", .kind = Kind::default_, .priority = 50});
  }
  std::string runs() {
    return ran_by([&] { EXPECT_TRUE(copy(rows.y, rows.x).ok()); });
  }
  Operator copy;
  Rows rows;
};

/// Watches a file by polling with tick().
struct Following {
  Following() {
    write_file(path, "opmux: 1\n");
    Options options = bare();
    options.sources.config = path;
    options.sources.own_thread = options.sources.last_known_good = false;
    stage = std::make_unique<Switched>(options);
    settle();
  }
  void tick(int milliseconds) {
    stage->runtime.tick(std::chrono::milliseconds(now += milliseconds));
  }
  void settle() {
    for (int i = 0; i < 6; ++i) tick(100);
  }
  TemporaryFolder folder;
  std::string path = folder.at("policy.yaml");
  int now = 1000;
  std::unique_ptr<Switched> stage;
};

TEST(Defects, a_racing_policy_change_leaves_the_old_choice_cached_under_the_new_generation) {
  Switched stage;
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    Rows rows;
    while (!stop.load()) (void)stage.copy(rows.y, rows.x);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string provider = i % 2 == 0 ? "b" : "c";
    ASSERT_TRUE(stage.runtime.policy().load(text_for(provider)).ok());
    CallReport report;
    ASSERT_TRUE(stage.copy.with(report)(stage.rows.y, stage.rows.x).ok());
    EXPECT_EQ(report.implementation, "copy/" + provider + ".x");
    EXPECT_EQ(report.generation, stage.runtime.policy().state().generation);
    EXPECT_EQ(stage.runs(), report.implementation);
  }
  stop.store(true);
  caller.join();
}

TEST(Defects, debounce_drops_the_last_write) {
  Following following;
  write_file(following.path, text_for("b"));
  following.tick(10);
  write_file(following.path, text_for("c"));
  following.settle();
  EXPECT_EQ(following.stage->runs(), "copy/c.x");
}

TEST(Defects, rename_over_is_missed) {
  Following following;
  write_file(following.folder.at("next"), text_for("b"));
  std::filesystem::rename(following.folder.at("next"), following.path);
  following.settle();
  EXPECT_EQ(following.stage->runs(), "copy/b.x");
}

TEST(Defects, validation_errors_do_not_reach_the_error_callback) {
  Following following;
  std::vector<std::string> heard;
  following.stage->runtime.policy().on_change(
      [&](const PolicyChange& change) { heard.emplace_back(change.status.message()); });
  write_file(following.path, "opmux: 1\nrules:\n  - {op: cpoy, strict: true}\n");
  following.settle();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("policy.yaml:3:"), std::string::npos) << heard[0];
}

TEST(Defects, a_reload_leaves_stale_cached_decisions) {
  Switched stage;
  EXPECT_EQ(stage.runs(), "copy/a.x");
  EXPECT_EQ(stage.runs(), "copy/a.x");
  Plan plan = stage.copy.bind(stage.rows.y, stage.rows.x).value();
  ASSERT_TRUE(stage.runtime.policy().load(text_for("b")).ok());
  EXPECT_EQ(stage.runs(), "copy/b.x");
  EXPECT_EQ(plan.state(), Plan::State::stale);
  ASSERT_TRUE(
      stage.runtime.policy().load("opmux: 1\nrules:\n  - {op: copy, deny: [copy/a.x]}\n").ok());
  EXPECT_EQ(plan.state(), Plan::State::revoked);
  EXPECT_EQ(stage.runs(), "copy/b.x");
}

TEST(Defects, a_fallback_ignores_a_deny_rule_of_a_file) {
  Switched stage;
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules:\n  - {name: no-b, op: copy, deny: [copy/b.x]}\n")
                  .ok());
  stage.kernel("copy/a.x").body = [](CallFrame&) { return Outcome::failed; };
  EXPECT_EQ(stage.runs(), "copy/a.x copy/c.x");
}

}  // namespace
}  // namespace opmux::test
