#include <algorithm>
#include <mutex>

#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

/// Collects the codes of events; shared with the sink.
struct FreezeEvents {
  void add(const Event& event) {
    const std::lock_guard lock(mutex);
    all.push_back(event);
  }
  size_t count(const std::string& code) {
    const std::lock_guard lock(mutex);
    return static_cast<size_t>(std::ranges::count(all, code, &Event::code));
  }
  std::mutex mutex;
  std::vector<Event> all;
};

struct FreezeTest : testing::Test {
  explicit FreezeTest(Variables variables = {}) : stage(options(std::move(variables))) {
    copy = define_three_copies(stage);
  }
  Options options(Variables variables) {
    Options made = bare(std::move(variables));
    made.sink = [this](const Event& event) { events.add(event); };
    return made;
  }
  std::string runs(Rows& t) {
    return ran_by([&] { EXPECT_TRUE((*copy)(t.y, t.x).ok()); });
  }
  CallReport report(Rows& t, Status* status = nullptr) {
    CallReport filled;
    const Status done = copy->with(filled)(t.y, t.x);
    if (status != nullptr) *status = done;
    return filled;
  }

  FreezeEvents events;
  Rows wide{2, 32}, narrow{2, 8};
  Stage stage;
  std::optional<Operator> copy;
};

TEST_F(FreezeTest, refuses_what_would_change_the_choice_and_says_so) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_FALSE(stage.runtime.lockfile().frozen());
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  EXPECT_TRUE(stage.runtime.lockfile().frozen());
  const uint64_t generation = stage.runtime.generation();
  const auto refused = [](const Status& status) {
    EXPECT_EQ(status.code(), Code::frozen);
    EXPECT_EQ(status.reason(), "runtime.frozen");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("frozen; create a new runtime to make changes"));
  };
  refused(stage.runtime.policy().set({.prefer = {"copy/b.x"}}));
  refused(stage.runtime.policy().reset());
  refused(stage.runtime.policy().load("opmux: 1\nrules: [{op: copy, deny: [copy/a.x]}]\n"));
  refused(stage.runtime.policy().rollback());
  refused(stage.runtime.define("other(out Tensor y[N], Tensor x[N])"));
  refused(stage.runtime
              .implement({.id = "copy/d.x",
                          .kind = Kind::default_,
                          .priority = 900,
                          .run = [](CallFrame&) { return Outcome::ok; }})
              .error());
  refused(stage.runtime.plugins().enable_backend("a", false));
  // Defining an existing operator again changes nothing.
  EXPECT_TRUE(stage.runtime.define(kCopy).ok());
  EXPECT_EQ(stage.runtime.generation(), generation);
  EXPECT_EQ(runs(wide), "copy/a.x");
}

TEST_F(FreezeTest, returns_what_was_decided_as_a_lockfile) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_EQ(runs(narrow), "copy/b.x");
  const Lockfile lock = stage.runtime.lockfile().freeze().value();
  ASSERT_EQ(lock.choices.size(), 2u);
  EXPECT_EQ(lock.choices[0].op, "copy");
  EXPECT_THAT(lock.choices[0].when, HasSubstr("H % 16 != 0"));
  EXPECT_EQ(lock.choices[0].implementation, "copy/b.x");
  EXPECT_THAT(lock.choices[1].when, HasSubstr("H % 16 == 0"));
  EXPECT_EQ(lock.choices[1].implementation, "copy/a.x");
  EXPECT_EQ(lock.choices[1].schema_hash.size(), 16u);
  EXPECT_EQ(stage.runtime.lockfile().freeze().value().to_string(), lock.to_string());
}

TEST_F(FreezeTest, a_class_that_was_not_decided_is_a_deviation_that_runs) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  EXPECT_FALSE(report(wide).fell_back);
  EXPECT_EQ(events.count("lock.deviation"), 0u);
  const CallReport other = report(narrow);
  EXPECT_EQ(other.implementation, "copy/b.x");
  EXPECT_TRUE(other.fell_back);
  EXPECT_EQ(other.reason, "the frozen runtime has no entry for this call of copy");
  EXPECT_EQ(runs(narrow), "copy/b.x");
  EXPECT_EQ(events.count("lock.deviation"), 1u);
  EXPECT_THAT(copy->explain(narrow.y, narrow.x).note, HasSubstr("no entry for this call"));
  EXPECT_THAT(copy->explain(wide.y, wide.x).candidates[0].reason, HasSubstr("locked"));
}

TEST_F(FreezeTest, strict_refuses_a_deviation_instead_of_running_it) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  const PolicyScope strict(stage.runtime, {.strict = true});
  EXPECT_EQ(runs(wide), "copy/a.x");
  Status status;
  EXPECT_EQ(ran_by([&] { report(narrow, &status); }), "");
  EXPECT_EQ(status.code(), Code::frozen);
  EXPECT_EQ(status.reason(), "lock.deviation");
  EXPECT_THAT(std::string(status.message()), HasSubstr("strict allows no other"));
  EXPECT_EQ(copy->bind(narrow.y, narrow.x).error().reason(), "lock.deviation");
  const Explanation why = copy->explain(narrow.y, narrow.x);
  EXPECT_EQ(why.chosen, "");
  EXPECT_EQ(candidate(why, "copy/b.x").code, "lock.deviation");
}

TEST_F(FreezeTest, a_withdrawn_choice_is_replaced_and_logged_unless_strict) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  ASSERT_TRUE(stage.kernel("copy/a.x").registration.withdraw().ok());
  const CallReport after = report(wide);
  EXPECT_EQ(after.implementation, "copy/b.x");
  EXPECT_EQ(after.reason, "the frozen runtime locks copy/a.x, which is not registered");
  const PolicyScope strict(stage.runtime, {.strict = true});
  Status status;
  EXPECT_EQ(ran_by([&] { report(wide, &status); }), "");
  EXPECT_EQ(status.code(), Code::frozen);
}

TEST_F(FreezeTest, fallback_after_a_failure_still_works) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  stage.kernel("copy/a.x").body = [](CallFrame&) { return Outcome::failed; };
  EXPECT_EQ(runs(wide), "copy/a.x copy/b.x");
  EXPECT_TRUE(report(wide).fell_back);
}

TEST_F(FreezeTest, a_scope_may_choose_otherwise) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  {
    const PolicyScope require(stage.runtime, {.require = {"copy/c.x"}});
    EXPECT_FALSE(report(wide).fell_back);
    EXPECT_EQ(runs(wide), "copy/c.x");
  }
  {
    const PolicyScope prefer(stage.runtime, {.prefer = {"copy/b.x"}});
    EXPECT_EQ(runs(wide), "copy/b.x");
  }
  EXPECT_EQ(runs(wide), "copy/a.x");
}

TEST_F(FreezeTest, plans_and_decide_count_as_decided) {
  const Plan plan = copy->bind(wide.y, wide.x).value();
  EXPECT_EQ(copy->decide(none, narrow.x).value(), "copy/b.x");
  const Lockfile lock = stage.runtime.lockfile().freeze().value();
  EXPECT_EQ(lock.choices.size(), 2u);
  EXPECT_EQ(plan.state(), Plan::State::current);
  EXPECT_FALSE(report(narrow).fell_back);
}

TEST_F(FreezeTest, a_lockfile_chooses_what_priorities_would_not) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_EQ(runs(narrow), "copy/b.x");
  Lockfile lock = stage.runtime.lockfile().current();
  for (LockedChoice& choice : lock.choices) choice.implementation = "copy/c.x";
  ASSERT_TRUE(stage.runtime.lockfile().freeze(Lockfile::parse(lock.to_string()).value()).ok());
  EXPECT_EQ(runs(wide), "copy/c.x");
  EXPECT_EQ(runs(narrow), "copy/c.x");
  EXPECT_FALSE(report(wide).fell_back);
  EXPECT_EQ(stage.runtime.lockfile().freeze(lock).code(), Code::frozen);
}

TEST_F(FreezeTest, a_lockfile_that_does_not_fit_changes_nothing_and_lists_the_differences) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  Lockfile lock = stage.runtime.lockfile().current();
  LockedChoice choice = lock.choices[0];
  choice.implementation = "copy/gone.x";
  lock.choices.push_back(choice);
  lock.choices.push_back(choice);
  choice = lock.choices[0];
  choice.build_id = "b17";
  lock.choices.push_back(choice);
  lock.choices.push_back({"paste", "always", "paste/a.x", "", std::string(16, '0')});
  choice = lock.choices[0];
  choice.schema_hash = std::string(16, '0');
  lock.choices.push_back(choice);
  choice = lock.choices[0];
  choice.when = "W % 16 == 0";
  lock.choices.push_back(choice);
  lock.policy_hash = std::string(16, 'f');
  const Status refused = stage.runtime.lockfile().freeze(lock, "old.lock");
  EXPECT_EQ(refused.reason(), "lock.misfit");
  EXPECT_EQ(std::string(refused.message()),
            "old.lock no longer matches this runtime, 6 differences:\n"
            "  another policy is in force: 0000000000000000, was ffffffffffffffff; "
            "`opmux config show` prints it\n"
            "  copy/gone.x is not registered (2 classes)\n"
            "  copy/a.x comes from another build: none, was b17\n"
            "  operator paste does not exist\n"
            "  copy has another schema: " +
                copy->schema() +
                "\n"
                "  'W % 16 == 0' is not a valid property of calls of copy\n"
                "restore the setup it was written for, or write a new one with `opmux lock`");
  EXPECT_FALSE(stage.runtime.lockfile().frozen());
  EXPECT_TRUE(stage.runtime.policy().set({.prefer = {"copy/b.x"}}).ok());
  EXPECT_EQ(runs(wide), "copy/b.x");
}

TEST_F(FreezeTest, a_policy_that_denies_a_choice_does_not_fit_it) {
  EXPECT_EQ(runs(wide), "copy/a.x");
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"copy/a.x"}}).ok());
  const std::string why(stage.runtime.lockfile().check(lock).message());
  EXPECT_THAT(why, HasSubstr("another policy is in force"));
  EXPECT_THAT(why, HasSubstr("copy/a.x may not run: policy.denied by set_policy (code)"));
  ASSERT_TRUE(stage.runtime.policy().reset().ok());
  EXPECT_TRUE(stage.runtime.lockfile().check(lock).ok());
  EXPECT_FALSE(stage.runtime.lockfile().frozen());
}

TEST_F(FreezeTest, conditions_that_compute_are_facts_of_classes) {
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules:\n"
                        "  - {op: copy, when: rows * H > 50, prefer: [copy/c.x]}\n")
                  .ok());
  EXPECT_EQ(runs(wide), "copy/c.x");
  EXPECT_EQ(runs(narrow), "copy/b.x");
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 2u);
  EXPECT_THAT(lock.choices[1].when, HasSubstr("H % 16 == 0 && ((rows*H)>50) == true"));
  ASSERT_TRUE(stage.runtime.lockfile().freeze(Lockfile::parse(lock.to_string()).value()).ok());
  Rows large{4, 16};
  EXPECT_FALSE(report(large).fell_back);
  EXPECT_EQ(runs(large), "copy/c.x");
}

struct StaticModeTest : testing::Test {
  Options options(Variables variables) const {
    variables.emplace_back("OPMUX_STATE_DIR", folder.at("state"));
    return bare(std::move(variables));
  }
  /// Writes a lockfile for softmax, which has only its reference.
  void write_lock() const {
    const Runtime runtime = Runtime::create(options({})).value();
    Rows t;
    ASSERT_TRUE(runtime.op("softmax")->decide(none, t.x));
    ASSERT_TRUE(runtime.lockfile().current().write(folder.at("opmux.lock")).ok());
  }
  TemporaryFolder folder;
};

TEST_F(StaticModeTest, runs_by_the_lockfile_that_the_environment_names) {
  write_lock();
  const Runtime runtime =
      Runtime::create(options({{"OPMUX_LOCKFILE", folder.at("opmux.lock")}})).value();
  EXPECT_TRUE(runtime.lockfile().frozen());
  Rows t;
  CallReport report;
  ASSERT_TRUE(runtime.op("softmax")->with(report)(t.y, t.x).ok());
  EXPECT_EQ(report.implementation, "softmax/reference.scalar");
  EXPECT_FALSE(report.fell_back);
  ASSERT_TRUE(runtime.op("silu_and_mul")->with(report)(Rows(2, 4).y, t.x).ok());
  EXPECT_TRUE(report.fell_back);
  EXPECT_THAT(report.reason, HasSubstr("opmux.lock has no entry"));
}

TEST_F(StaticModeTest, a_lockfile_that_no_longer_fits_fails_at_start_with_the_differences) {
  write_lock();
  Options other = options({{"OPMUX_MODE", "static"}, {"OPMUX_STRICT", "1"}});
  other.sources.lockfile = folder.at("opmux.lock");
  const Status refused = Runtime::create(other).error();
  EXPECT_EQ(refused.reason(), "lock.misfit");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1 difference:\n  another policy"));
}

TEST_F(StaticModeTest, beside_a_policy_file_the_lockfile_counts_and_the_file_is_read_once) {
  write_file(folder.at("policy.yaml"), "opmux: 1\n");
  write_lock();
  const Runtime runtime =
      Runtime::create(options({{"OPMUX_CONFIG", folder.at("policy.yaml")}})).value();
  EXPECT_TRUE(runtime.lockfile().frozen());
  EXPECT_EQ(runtime.policy().state().version, 1u);
}

TEST_F(StaticModeTest, a_lockfile_that_is_named_and_that_the_mode_does_not_read_is_an_error) {
  write_lock();
  Variables both{{"OPMUX_MODE", "dynamic"}, {"OPMUX_LOCKFILE", folder.at("opmux.lock")}};
  const Status refused = Runtime::create(options(both)).error();
  EXPECT_EQ(refused.reason(), "mode.files");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("mode dynamic does not use a lockfile, but " + folder.at("opmux.lock")));
}

TEST_F(StaticModeTest, settings_name_the_lockfile_once_with_its_source) {
  write_lock();
  write_file(folder.at("policy.yaml"), "opmux: 1\n");
  const auto lines = [](const Runtime& runtime) {
    std::vector<std::string> origins;
    for (const SettingInfo& each : runtime.settings()) {
      if (each.key == "lockfile") origins.push_back(each.origin);
    }
    return origins;
  };
  const Variables named{{"OPMUX_LOCKFILE", folder.at("opmux.lock")}};
  EXPECT_THAT(lines(Runtime::create(options(named)).value()),
              testing::ElementsAre("OPMUX_LOCKFILE (environment)"));
  const Variables beside{{"OPMUX_CONFIG", folder.at("policy.yaml")}};
  EXPECT_THAT(lines(Runtime::create(options(beside)).value()),
              testing::ElementsAre("beside the policy file"));
}

TEST_F(StaticModeTest, needs_a_lockfile_that_can_be_read) {
  EXPECT_EQ(Runtime::create(options({{"OPMUX_MODE", "static"}})).error().reason(), "mode.files");
  Options missing = options({{"OPMUX_LOCKFILE", folder.at("nowhere.lock")}});
  EXPECT_FALSE(Runtime::create(missing));
  write_file(folder.at("bad.lock"), "opmux lockfile 1\n");
  EXPECT_EQ(Runtime::create(options({{"OPMUX_LOCKFILE", folder.at("bad.lock")}})).error().reason(),
            "lock.text");
}

}  // namespace
}  // namespace opmux::test
