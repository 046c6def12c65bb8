#include <chrono>

#include "tuned_stage.hpp"

/// Which implementation runs, given the rows of a bundle.
namespace opmux::test {
namespace {

/// `row` about another implementation.
tune::TuningRow about(tune::TuningRow row, const std::string& id, const std::string& build) {
  row.implementation = {id, build};
  return row;
}

TEST(Choosing, the_faster_one_runs_within_the_interval_and_the_first_by_score_beside_it) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(4), "a.first");
  EXPECT_EQ(tuned.ran(5), "b.fast");
  EXPECT_EQ(tuned.ran(95), "b.fast");
  EXPECT_EQ(tuned.ran(96), "a.first");
  // Again with plans that are cached and move between the classes.
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(tuned.ran(95), "b.fast");
    EXPECT_EQ(tuned.ran(96), "a.first");
    EXPECT_EQ(tuned.ran(5), "b.fast");
    EXPECT_EQ(tuned.ran(4), "a.first");
  }
}

TEST(Choosing, a_row_is_about_its_types_dimensions_and_threads_alone) {
  tune::TuningRow bf16_row = row(), wide = row(), threads = row();
  bf16_row.cell.dtypes = "bf16,bf16,bf16";
  wide.cell.dims[0].second = 8;
  threads.cell.threads = 2;
  for (const tune::TuningRow& other : {bf16_row, wide, threads}) {
    const WithRows rows({other});
    TunedStage tuned(rows.options());
    EXPECT_EQ(tuned.ran(10), "a.first");
  }
  const WithRows rows({bf16_row, threads});
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(10, {}, bf16), "b.fast");
  EXPECT_EQ(tuned.ran(10, {.max_threads = 2}), "b.fast");
  EXPECT_EQ(tuned.ran(10, {.max_threads = 1}), "a.first");
  EXPECT_EQ(tuned.ran(10, {.max_threads = 2}), "b.fast");
}

TEST(Choosing, rows_of_captured_calls_are_for_captured_calls) {
  tune::TuningRow captured = row();
  captured.cell.captured = true;
  const WithRows rows({captured});
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(10), "a.first");
  {
    const AmbientScope scope({.capturing = true});
    EXPECT_EQ(tuned.ran(10), "b.fast");
  }
  EXPECT_EQ(tuned.ran(10), "a.first");
}

TEST(Choosing, a_tie_or_an_unclear_row_keeps_the_order_by_score) {
  tune::TuningRow tie = row(-0.009), unclear = row(-0.3), slower = row(0.4);
  tie.low = -0.0099;
  tie.high = 0.0;
  unclear.low = -0.7;
  unclear.high = 0.1;
  for (const tune::TuningRow& each : {tie, unclear, slower}) {
    const WithRows rows({each});
    EXPECT_EQ(TunedStage(rows.options()).ran(10), "a.first") << each.log_ratio;
  }
}

TEST(Choosing, the_fastest_of_several_runs_also_if_the_first_by_score_is_not_the_baseline) {
  tune::TuningRow first = row(0.5), last = row(-0.9);
  for (tune::TuningRow* each : {&first, &last}) each->baseline = {"b.fast", "b1"};
  const WithRows rows({about(first, "a.first", "a1"), about(last, "c.last", "c1")});
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(10), "c.last");
  EXPECT_EQ(tuned.ran(100), "a.first");
}

TEST(Choosing, rules_beat_rows) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  const auto with = [&](const Policy& policy) {
    EXPECT_TRUE(tuned.stage.runtime.policy().set(policy).ok());
    return tuned.ran(10);
  };
  EXPECT_EQ(with({}), "b.fast");
  EXPECT_EQ(with({.deny = {"mul/b.fast"}}), "a.first");
  EXPECT_EQ(with({.prefer = {"mul/c.last"}}), "c.last");
  EXPECT_EQ(with({.prefer = {"mul/a.first"}}), "a.first") << "another tier";
  EXPECT_EQ(with({.require = {"mul/c.last"}, .allow_none = true}), "c.last");
  EXPECT_EQ(with({.prefer = {"mul/*"}}), "b.fast") << "all are in the best tier";
}

TEST(Choosing, off_in_a_policy_ignores_rows_and_the_strongest_policy_counts) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  Runtime& runtime = tuned.stage.runtime;
  ASSERT_TRUE(runtime.policy().load("opmux: 1\ntuning: off\n", "policy.yaml").ok());
  EXPECT_EQ(tuned.ran(10), "a.first");
  EXPECT_EQ(setting(runtime, "tuning"), "off <- tuning (policy.yaml)");
  ASSERT_TRUE(runtime.policy().set({.tuning = Tuning::bundle}).ok());
  EXPECT_EQ(tuned.ran(10), "b.fast");
  {
    const PolicyScope scope(runtime, {.tuning = Tuning::off});
    ASSERT_TRUE(scope.status().ok());
    EXPECT_EQ(tuned.ran(10), "a.first");
  }
  EXPECT_EQ(tuned.ran(10), "b.fast");
}

TEST(Choosing, a_policy_file_says_whether_measured_speeds_count) {
  const auto mode_of = [](const std::string& value) {
    Stage stage;
    const Status loaded =
        stage.runtime.policy().load("opmux: 1\ntuning: " + value + "\n", "policy.yaml");
    if (!loaded.ok()) return std::string(loaded.reason());
    for (const SettingInfo& setting : stage.runtime.settings()) {
      if (setting.key == "tuning") return setting.value;
    }
    return std::string();
  };
  EXPECT_EQ(mode_of("off"), "off");
  EXPECT_EQ(mode_of("bundle"), "bundle");
  EXPECT_EQ(mode_of("online"), "online");
  EXPECT_EQ(mode_of("{online: propose}"), "online");
  EXPECT_EQ(mode_of("{online: apply}"), "online_apply");
  for (const char* const wrong :
       {"bundel", "online_apply", "{online: always}", "{bundle: apply}", "{online: {}}", "[]"}) {
    EXPECT_THAT(mode_of(wrong), testing::StartsWith("policy.")) << wrong;
  }
}

TEST(Choosing, deterministic_calls_ignore_rows_about_the_size_of_the_batch) {
  tune::TuningRow by_width = row();
  by_width.cell.dims = {{"N", 4}};
  by_width.range = {"K", 1, 100};
  const WithRows by_rows({row()}), by_other({by_width});
  TunedStage batch(by_rows.options()), width(by_other.options());
  EXPECT_EQ(width.ran(10), "b.fast");
  const AmbientScope scope({.deterministic = true});
  EXPECT_EQ(batch.ran(10), "a.first");
  EXPECT_THAT(batch.explain(10).note, testing::HasSubstr("deterministic"));
  EXPECT_EQ(width.ran(10), "b.fast") << "the width of a layer is not the size of a batch";
}

TEST(Choosing, the_more_careful_row_counts_then_the_nearer_one) {
  tune::TuningRow quick = row(-0.8), confirmed = row(0.3);
  quick.rigor = tune::Rigor::quick;
  confirmed.rigor = tune::Rigor::confirmed;
  PrivateFolder folder;
  const std::string local = "state/store/tuning/here.bundle";
  const auto ran = [&](const tune::TuningRow& in_store, const tune::TuningRow& in_fleet) {
    folder.write(local, bundle_of({in_store}));
    const std::string fleet = folder.write("fleet.bundle", bundle_of({in_fleet}));
    return TunedStage(bare({{"OPMUX_TUNING", fleet}, {"OPMUX_STATE_DIR", folder.at("state")}}))
        .ran(10);
  };
  EXPECT_EQ(ran(quick, confirmed), "a.first");
  EXPECT_EQ(ran(confirmed, quick), "a.first");
  EXPECT_EQ(ran(row(-0.8), row(0.3)), "b.fast") << "of equal care the local one counts";
  EXPECT_EQ(ran(row(0.3), row(-0.8)), "a.first");
}

TEST(Choosing, a_row_of_this_kernel_corrects_a_more_careful_aged_one) {
  tune::TuningRow now = row(0.3), before = row(-0.8);
  now.rigor = tune::Rigor::quick;
  before.rigor = tune::Rigor::confirmed;
  tune::Machine older = this_machine();
  older.soft += "x";
  PrivateFolder folder;
  folder.write("state/store/tuning/here.bundle", bundle_of({before}, older));
  const auto ran = [&](const std::string& fleet) {
    return TunedStage(bare({{"OPMUX_TUNING", fleet}, {"OPMUX_STATE_DIR", folder.at("state")}}))
        .ran(10);
  };
  EXPECT_EQ(ran(""), "b.fast");
  EXPECT_EQ(ran(folder.write("fleet.bundle", bundle_of({now}))), "a.first");
}

TEST(Choosing, a_plan_and_a_decision_in_advance_choose_as_a_call_does) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  const TensorView y = TunedStage::view(tuned.out, f32, {10, 4}),
                   x = TunedStage::view(tuned.in, f32, {10, 4}),
                   w = TunedStage::view(tuned.weight, f32, {4, 4});
  Plan plan = tuned.op.bind(y, x, w).value();
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(y, x, w).ok()); }), "mul/b.fast");
  EXPECT_EQ(tuned.op.decide(y, x, w).value(), "mul/b.fast");
  EXPECT_EQ(tuned.explain(10).chosen, "mul/b.fast");
}

TEST(Choosing, a_lockfile_keeps_the_choices_of_rows_without_the_bundle) {
  const WithRows rows({row()});
  Lockfile lock;
  {
    TunedStage tuned(rows.options());
    EXPECT_EQ(tuned.ran(10), "b.fast");
    EXPECT_EQ(tuned.ran(200), "a.first");
    lock = tuned.stage.runtime.lockfile().current();
  }
  ASSERT_EQ(lock.choices.size(), 2u);
  const Lockfile again = Lockfile::parse(lock.to_string()).value();
  TunedStage plain(bare({{"OPMUX_STATE_DIR", rows.folder.at("other")}}));
  const Status frozen = plain.stage.runtime.lockfile().freeze(again);
  ASSERT_TRUE(frozen.ok()) << frozen.message();
  EXPECT_EQ(plain.ran(10), "b.fast");
  EXPECT_EQ(plain.ran(5), "b.fast");
  EXPECT_EQ(plain.ran(96), "a.first");
  EXPECT_EQ(plain.ran(3), "a.first");
}

TEST(Choosing, an_open_breaker_gives_way_to_the_next_and_is_named) {
  const WithRows rows({row()});
  Options options = rows.options();
  options.sources.own_thread = false;
  TunedStage tuned(std::move(options));
  std::chrono::seconds now{1};
  const auto force = [&](const std::string& id, BreakerForce what) {
    ASSERT_TRUE(tuned.stage.runtime.health().force_breaker(id, what).ok());
    tuned.stage.runtime.tick(++now);
  };
  const auto called = [&] {
    CallReport report;
    EXPECT_TRUE(tuned.op
                    .with(report)(TunedStage::view(tuned.out, f32, {10, 4}),
                                  TunedStage::view(tuned.in, f32, {10, 4}),
                                  TunedStage::view(tuned.weight, f32, {4, 4}))
                    .ok());
    return report;
  };
  EXPECT_EQ(called().implementation, "mul/b.fast");
  force("mul/b.fast", BreakerForce::isolate);
  EXPECT_EQ(called().implementation, "mul/a.first");
  EXPECT_THAT(called().reason, testing::HasSubstr("mul/b.fast"));
  force("mul/b.fast", BreakerForce::close);
  EXPECT_EQ(called().implementation, "mul/b.fast");
  // The breaker of one that rows would not choose makes no difference.
  force("mul/a.first", BreakerForce::isolate);
  EXPECT_EQ(called().implementation, "mul/b.fast");
  EXPECT_FALSE(called().fell_back) << called().reason;
}

}  // namespace
}  // namespace opmux::test
