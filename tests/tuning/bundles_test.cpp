#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/crypto.hpp"
#include "base/event_log.hpp"
#include "plugin/trust/signature.hpp"
#include "tune/tuning_table.hpp"
#include "tuned_stage.hpp"

/// Which bundles are found, what becomes of their rows, and how runtimes report it.
namespace opmux::test {
namespace {

std::vector<TuningBundle> bundles_of(const Runtime& runtime) {
  runtime.tuning().check();
  return runtime.tuning().bundles();
}

/// Options that collect the codes of events about bundles.
Options watched(Options options, std::vector<std::string>& codes) {
  options.sink = [&codes](const Event& event) {
    if (event.code.starts_with("tune.")) codes.push_back(event.code);
  };
  return options;
}

TEST(Bundles, of_the_store_and_of_a_file_or_folder_in_the_environment_are_found) {
  PrivateFolder folder;
  folder.write("state/store/tuning/b.bundle", bundle_of({row()}));
  folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  folder.write("state/store/tuning/notes.txt", "not a bundle");
  folder.write("fleet/f.bundle", bundle_of({row(-0.1)}));
  const auto paths = [&](const std::string& given) {
    std::string text;
    const Stage stage(
        bare({{"OPMUX_TUNING", folder.at(given)}, {"OPMUX_STATE_DIR", folder.at("state")}}));
    for (const TuningBundle& each : stage.runtime.tuning().bundles()) {
      EXPECT_EQ(each.problem, "");
      EXPECT_EQ(each.digest.size(), 64u);
      text += each.found_in + ":" + each.path.substr(folder.path().string().size() + 1) + " ";
    }
    return text;
  };
  const std::string all =
      "local:state/store/tuning/a.bundle local:state/store/tuning/b.bundle "
      "OPMUX_TUNING:fleet/f.bundle ";
  EXPECT_EQ(paths("fleet"), all);
  EXPECT_EQ(paths("fleet/f.bundle"), all);
}

TEST(Bundles, a_folder_of_the_options_is_the_store) {
  PrivateFolder folder;
  folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  Options options = bare();
  options.state.folder = folder.at("state");
  TunedStage tuned(options);
  EXPECT_EQ(tuned.ran(10), "b.fast");
}

TEST(Bundles, a_file_that_is_no_bundle_is_reported_and_does_not_fail_the_start) {
  PrivateFolder folder;
  folder.write("state/store/tuning/a.bundle", "OPMUXTUN");
  folder.write("state/store/tuning/good.bundle", bundle_of({row()}));
  std::vector<std::string> codes;
  TunedStage tuned(watched(bare({{"OPMUX_TUNING", folder.at("missing.bundle")},
                                 {"OPMUX_STATE_DIR", folder.at("state")}}),
                           codes));
  EXPECT_EQ(tuned.ran(10), "b.fast");
  EXPECT_THAT(codes, testing::ElementsAre("tune.bundle", "tune.bundle"));
  const std::vector<TuningBundle> found = bundles_of(tuned.stage.runtime);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[0].problem, testing::HasSubstr("shorter than a header"));
  EXPECT_EQ(found[1].problem, "");
  EXPECT_THAT(found[2].problem, testing::HasSubstr("cannot be opened"));
}

TEST(Bundles, of_the_environment_must_be_signed_if_plugins_must) {
  PrivateFolder folder;
  const std::string seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
  const std::string bytes = bundle_of({row()});
  const std::string path = folder.write("fleet/a.bundle", bytes);
  const std::string digest = tune::Bundle::open(std::as_bytes(std::span(bytes))).value().digest();
  const auto key = base::signing_key(seed);
  ASSERT_TRUE(key.has_value());
  folder.write("keys/acme.pub", plugin::text_of(plugin::KeyFile{"acme", key->public_key, ""}));
  const auto sign = [&](const std::string& of) {
    const plugin::SecretKeyFile secret{"acme", seed};
    folder.write("fleet/a.bundle.sig", plugin::text_of(plugin::make_signature(secret, of).value()));
  };
  const auto ran = [&](TuningBundle& found) {
    Options options = bare({{"OPMUX_TUNING", path}, {"OPMUX_STATE_DIR", folder.at("state")}});
    options.plugins.trust = Trust::signed_only;
    options.plugins.keyring = folder.at("keys");
    TunedStage tuned(options);
    std::string id = tuned.ran(10);
    found = tuned.stage.runtime.tuning().bundles().back();
    return id;
  };
  TuningBundle found;
  EXPECT_EQ(ran(found), "a.first");
  EXPECT_THAT(found.problem, testing::HasSubstr("a.bundle.sig"));
  sign(digest);
  EXPECT_EQ(ran(found), "b.fast");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.signer, "acme");
  sign(std::string(64, '0'));
  EXPECT_EQ(ran(found), "a.first");
  EXPECT_THAT(found.problem, testing::HasSubstr("does not match"));
  EXPECT_EQ(found.signer, "");
  // Rows that this user measured need no signature.
  folder.write("state/store/tuning/own.bundle", bytes);
  EXPECT_EQ(ran(found), "b.fast");
}

TEST(Bundles, that_are_reloaded_decide_the_next_calls) {
  PrivateFolder folder;
  std::vector<std::string> codes;
  TunedStage tuned(watched(bare({{"OPMUX_STATE_DIR", folder.at("state")}}), codes));
  EXPECT_EQ(tuned.ran(10), "a.first");
  folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  EXPECT_EQ(tuned.ran(10), "a.first") << "nothing changes before reload()";
  ASSERT_TRUE(tuned.stage.runtime.tuning().reload().ok());
  EXPECT_EQ(tuned.ran(10), "b.fast");
  EXPECT_EQ(tuned.ran(100), "a.first") << "outside of the range of the row";
  EXPECT_EQ(bundles_of(tuned.stage.runtime)[0].counts.used, 1u);
  std::filesystem::remove(folder.at("state/store/tuning/a.bundle"));
  ASSERT_TRUE(tuned.stage.runtime.tuning().reload().ok());
  EXPECT_EQ(tuned.ran(10), "a.first");
  EXPECT_THAT(bundles_of(tuned.stage.runtime), testing::IsEmpty());
  EXPECT_THAT(codes, testing::ElementsAre("tune.reloaded", "tune.reloaded"));
}

TEST(Bundles, that_are_reloaded_make_bound_plans_stale) {
  PrivateFolder folder;
  TunedStage tuned(bare({{"OPMUX_STATE_DIR", folder.at("state")}}));
  const Plan plan =
      tuned.op
          .bind(TunedStage::view(tuned.out, f32, {10, 4}), TunedStage::view(tuned.in, f32, {10, 4}),
                TunedStage::view(tuned.weight, f32, {4, 4}))
          .value();
  EXPECT_EQ(plan.state(), Plan::State::current);
  folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  ASSERT_TRUE(tuned.stage.runtime.tuning().reload().ok());
  EXPECT_EQ(plan.state(), Plan::State::stale);
  EXPECT_EQ(plan.implementation(), "mul/a.first");
}

TEST(Bundles, are_not_reloaded_in_a_frozen_runtime) {
  PrivateFolder folder;
  TunedStage tuned(bare({{"OPMUX_STATE_DIR", folder.at("state")}}));
  EXPECT_EQ(tuned.ran(10), "a.first");
  ASSERT_TRUE(tuned.stage.runtime.lockfile().freeze());
  folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  const Status refused = tuned.stage.runtime.tuning().reload();
  EXPECT_EQ(refused.code(), Code::frozen);
  EXPECT_EQ(tuned.ran(10), "a.first");
  EXPECT_THAT(tuned.stage.runtime.tuning().bundles(), testing::IsEmpty());
}

TEST(Bundles, that_others_can_change_are_not_used) {
  PrivateFolder folder;
  namespace fs = std::filesystem;
  const std::string file = folder.write("state/store/tuning/a.bundle", bundle_of({row()}));
  const std::string fleet = folder.write("fleet/a.bundle", bundle_of({row()}));
  const auto ran_after = [&](const std::string& path, fs::perms mode, std::string place) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, mode);
    std::vector<std::string> codes;
    TunedStage tuned(
        watched(bare({{place, folder.at(place == "OPMUX_TUNING" ? "fleet" : "state")}}), codes));
    const std::string ran = tuned.ran(10);
    fs::permissions(path, before);
    const std::vector<TuningBundle> found = tuned.stage.runtime.tuning().bundles();
    EXPECT_EQ(found.size(), 1u) << path;
    if (ran == "b.fast") {
      EXPECT_THAT(codes, testing::IsEmpty());
      return ran;
    }
    EXPECT_THAT(codes, testing::ElementsAre("tune.bundle"));
    EXPECT_THAT(found[0].problem, testing::HasSubstr("must belong to you or to root"));
    return ran;
  };
  EXPECT_EQ(ran_after(file, fs::perms(0644), "OPMUX_STATE_DIR"), "b.fast");
  EXPECT_EQ(ran_after(file, fs::perms(0664), "OPMUX_STATE_DIR"), "a.first");
  EXPECT_EQ(ran_after(file, fs::perms(0646), "OPMUX_STATE_DIR"), "a.first");
  EXPECT_EQ(ran_after(fleet, fs::perms(0646), "OPMUX_TUNING"), "a.first");
  EXPECT_EQ(ran_after(folder.at("fleet"), fs::perms(0777), "OPMUX_TUNING"), "a.first");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(::chown(fleet.c_str(), 12345, 12345), 0);
  EXPECT_EQ(ran_after(fleet, fs::perms(0644), "OPMUX_TUNING"), "a.first");
}

TEST(Bundles, rows_of_another_machine_are_ignored_and_those_of_another_kernel_are_aged) {
  tune::Machine foreign = this_machine(), aged = this_machine();
  foreign.hard += "x";
  aged.soft += "x";
  {
    const WithRows rows({row()}, foreign);
    TunedStage tuned(rows.options());
    EXPECT_EQ(tuned.ran(10), "a.first");
    EXPECT_EQ(bundles_of(tuned.stage.runtime)[0].counts.foreign, 1u);
    EXPECT_THAT(tuned.explain(10).note, testing::HasSubstr("1 row not used: another machine"));
  }
  const WithRows rows({row()}, aged);
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(10), "b.fast");
  const TuningCounts counts = bundles_of(tuned.stage.runtime)[0].counts;
  EXPECT_EQ(counts.used, 1u);
  EXPECT_EQ(counts.aged, 1u);
  const Explanation why = tuned.explain(10);
  EXPECT_THAT(why.note, testing::HasSubstr("1 row aged"));
  EXPECT_TRUE(candidate(why, "mul/b.fast").measured->aged);
}

TEST(Bundles, rows_of_another_build_schema_or_unknown_implementation_are_stale) {
  tune::TuningRow rebuilt = row(), baseline = row(), unknown = row();
  rebuilt.implementation.build = "b2";
  baseline.baseline.build = "a2";
  unknown.implementation.id = "d.gone";
  for (const tune::TuningRow& each : {rebuilt, baseline, unknown}) {
    const WithRows rows({each});
    TunedStage tuned(rows.options());
    EXPECT_EQ(tuned.ran(10), "a.first");
    EXPECT_EQ(bundles_of(tuned.stage.runtime)[0].counts.stale, 1u);
    EXPECT_EQ(tuned.explain(10).tuning->stale, 1u);
  }
  tune::TuningSet set;
  set.machines.push_back(this_machine());
  set.operators.push_back({"mul", 7, 0, {row()}});
  PrivateFolder folder;
  const std::string path = folder.write("old.bundle", tuner::write_bundle(set).value());
  TunedStage tuned(bare({{"OPMUX_TUNING", path}}));
  EXPECT_EQ(tuned.ran(10), "a.first");
  EXPECT_EQ(bundles_of(tuned.stage.runtime)[0].counts.stale, 1u);
}

TEST(Bundles, a_rebuilt_implementation_loses_its_rows_and_others_keep_theirs) {
  tune::TuningRow last = row(-0.4);
  last.implementation = {"c.last", "c1"};
  const WithRows rows({row(-0.8), last});
  TunedStage tuned(rows.options());
  EXPECT_EQ(tuned.ran(10), "b.fast");
  ASSERT_TRUE(tuned.stage.kernel("mul/b.fast").registration.withdraw().ok());
  EXPECT_EQ(tuned.ran(10), "c.last");
  tuned.add("b.fast", "b2", 100);
  EXPECT_EQ(tuned.ran(10), "c.last") << "the row was measured with another build";
  EXPECT_EQ(tuned.explain(10).tuning->stale, 1u);
}

TEST(Bundles, a_damaged_section_costs_its_operator_alone) {
  PrivateFolder folder;
  tune::TuningSet set;
  set.machines.push_back(this_machine());
  set.operators.push_back({"mul", hash_of(kMul), 0, {row()}});
  const std::string other = "other(out Tensor y[..., N], Tensor x[..., K], Tensor w[N, K])";
  set.operators.push_back({"other", hash_of(other), 0, {row(), row(0.1, 96, 100)}});
  std::string bytes = tuner::write_bundle(set).value();
  const auto bundle = tune::Bundle::open(std::as_bytes(std::span(bytes))).value();
  ASSERT_EQ(bundle.sections()[0].op, "mul");
  bytes[bundle.sections()[0].offset + 40] ^= 1;
  const std::string path = folder.write("fleet.bundle", bytes);
  std::vector<std::string> codes;
  TunedStage tuned(watched(bare({{"OPMUX_TUNING", path}}), codes));
  EXPECT_TRUE(codes.empty()) << "sections are not read at the start";
  tuned.stage.define(other);
  for (const char* id : {"other/a.first", "other/b.fast"}) {
    tuned.stage.add({.id = id,
                     .kind = Kind::default_,
                     .priority = id[6] == 'a' ? 200 : 100,
                     .build_id = id[6] == 'a' ? "a1" : "b1"});
  }
  EXPECT_EQ(tuned.ran(10), "a.first");
  EXPECT_EQ(tuned.ran(11), "a.first");
  EXPECT_THAT(codes, testing::ElementsAre("tune.section"));
  const Operator second = tuned.stage.runtime.op("other").value();
  const auto ran = ran_by([&] {
    EXPECT_TRUE(second(TunedStage::view(tuned.out, f32, {10, 4}),
                       TunedStage::view(tuned.in, f32, {10, 4}),
                       TunedStage::view(tuned.weight, f32, {4, 4}))
                    .ok());
  });
  EXPECT_EQ(ran, "other/b.fast");
  const TuningCounts counts = tuned.stage.runtime.tuning().bundles()[0].counts;
  EXPECT_EQ(counts.damaged, 1u);
  EXPECT_EQ(counts.used, 2u);
}

TEST(Bundles, each_changed_byte_costs_rows_and_nothing_else) {
  const std::string bytes = bundle_of({row(), row(0.2, 96, 200)});
  PrivateFolder folder;
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    const std::string path = folder.write("fleet.bundle", damaged);
    TunedStage tuned(bare({{"OPMUX_TUNING", path}}));
    EXPECT_EQ(tuned.ran(10), "a.first") << at;
    const TuningBundle found = bundles_of(tuned.stage.runtime)[0];
    EXPECT_TRUE(!found.problem.empty() || found.counts.damaged == 2) << at;
  }
}

TEST(Bundles, a_bundle_that_is_cut_or_replaced_while_it_is_open_does_no_harm) {
  const WithRows rows({row()});
  TunedStage replaced(rows.options());
  rows.folder.write("new", bundle_of({row(0.4)}));
  std::filesystem::rename(rows.folder.at("new"), rows.path);
  EXPECT_EQ(replaced.ran(10), "b.fast") << "the runtime keeps the bundle that it opened";
  TunedStage cut(rows.options());
  std::filesystem::resize_file(rows.path, 200);
  EXPECT_EQ(cut.ran(10), "a.first");
  EXPECT_EQ(cut.stage.runtime.tuning().bundles()[0].counts.damaged, 1u);
}

TEST(Bundles, explain_shows_the_row_and_the_first_by_score) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  const Explanation why = tuned.explain(10);
  ASSERT_EQ(why.chosen, "mul/b.fast");
  const Candidate chosen = candidate(why, "mul/b.fast"), first = candidate(why, "mul/a.first");
  ASSERT_TRUE(chosen.measured.has_value());
  EXPECT_EQ(chosen.measured->verdict, "faster");
  EXPECT_EQ(chosen.measured->baseline, "mul/a.first");
  EXPECT_NEAR(chosen.measured->speed, 2.2255, 0.001);
  EXPECT_LT(chosen.measured->low, chosen.measured->speed);
  EXPECT_GT(chosen.measured->high, chosen.measured->speed);
  EXPECT_EQ(chosen.measured->cell, "f32,f32,f32 K=4 N=4 threads=1 eager");
  EXPECT_EQ(chosen.measured->range, "rows=5..95");
  EXPECT_EQ(chosen.measured->date, "2026-11-16");
  const std::string text = why.to_string();
  EXPECT_THAT(text,
              testing::HasSubstr("measured 2.23x [2.12, 2.34] faster than a.first, 20 rounds, "
                                 "full, first of 3 accepted"));
  EXPECT_THAT(text, testing::HasSubstr("row f32,f32,f32 K=4 N=4 threads=1 eager, rows=5..95; "
                                       "OPMUX_TUNING bundle fleet.bundle (sha256 "));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("isa="))) << "the whole machine is in the JSON";
  EXPECT_THAT(first.reason, testing::HasSubstr("first by score, slower here by measurement"));
  const std::string json = to_json(why);
  EXPECT_THAT(json,
              testing::HasSubstr(R"("measured":{"verdict":"faster","baseline":"mul/a.first")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("tuning":{"used":1,"aged":0,"foreign":0,"stale":0)"));
  EXPECT_THAT(to_json(tuned.stage.runtime.tuning().bundles()),
              testing::HasSubstr(R"("found_in":"OPMUX_TUNING")"));
  EXPECT_FALSE(candidate(tuned.explain(100), "mul/b.fast").measured.has_value());
}

TEST(Bundles, explain_says_what_a_refused_candidate_would_gain) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  Policy policy;
  policy.deny = {"impl:mul/b.fast"};
  ASSERT_TRUE(tuned.stage.runtime.policy().set(policy).ok());
  const Explanation why = tuned.explain(10);
  EXPECT_EQ(why.chosen, "mul/a.first");
  const Candidate denied = candidate(why, "mul/b.fast");
  EXPECT_EQ(denied.code, "policy.denied");
  ASSERT_TRUE(denied.measured.has_value());
  EXPECT_EQ(denied.measured->verdict, "faster");
  EXPECT_THAT(denied.reason, testing::HasSubstr("; measured 2.23x [2.12, 2.34] faster than "
                                                "a.first, 20 rounds, full"));
  EXPECT_FALSE(candidate(tuned.explain(100), "mul/b.fast").measured.has_value()) << "no row";
  // Not compared with what runs now.
  policy.deny = {"impl:mul/a.first", "impl:mul/b.fast"};
  ASSERT_TRUE(tuned.stage.runtime.policy().set(policy).ok());
  EXPECT_FALSE(candidate(tuned.explain(10), "mul/b.fast").measured.has_value());
  // A preference holds whatever was measured.
  policy.deny = {"impl:mul/b.fast"};
  policy.prefer = {"impl:mul/a.first"};
  ASSERT_TRUE(tuned.stage.runtime.policy().set(policy).ok());
  EXPECT_FALSE(candidate(tuned.explain(10), "mul/b.fast").measured.has_value());
}

TEST(Bundles, explain_says_that_a_measurement_is_unclear) {
  tune::TuningRow unclear = row(-0.3);
  unclear.high = 0.1;
  const WithRows rows({unclear});
  TunedStage tuned(rows.options());
  EXPECT_THAT(tuned.explain(10).note, testing::HasSubstr("unclear, score decides"));
}

TEST(Bundles, checking_reads_the_rows_of_operators_that_were_not_used) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  const TuningControl tuning = tuned.stage.runtime.tuning();
  EXPECT_EQ(tuning.bundles()[0].counts.used, 0u);
  tuning.check();
  EXPECT_EQ(tuning.bundles()[0].counts.used, 1u);
  EXPECT_EQ(tuning.bundles()[0].rows, 1u);
}

TEST(Bundles, a_hundred_thousand_rows_cost_a_start_only_their_header) {
  constexpr int kOperators = 300, kCells = 21;
  tune::TuningSet set;
  set.machines.push_back(this_machine());
  for (int op = 0; op < kOperators; ++op) {
    tune::OperatorRows& one = set.operators.emplace_back(
        tune::OperatorRows{op == 0 ? "mul" : "mul" + std::to_string(op), hash_of(kMul), 0, {}});
    for (int cell = 0; cell < kCells; ++cell) {
      for (int64_t implementation = 0; implementation < 16; ++implementation) {
        tune::TuningRow each = row(-0.01 * static_cast<double>(implementation));
        each.cell.dims = {{"K", 4}, {"N", 4 + cell}};
        if (implementation > 0) each.implementation = {"x.v" + std::to_string(implementation), ""};
        one.rows.push_back(std::move(each));
      }
    }
  }
  PrivateFolder folder;
  const std::string path = folder.write("fleet.bundle", tuner::write_bundle(set).value());
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  const auto milliseconds = [](auto time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  base::EventLog log({});
  double best = 1e9;
  size_t memory = 0;
  for (int i = 0; i < 20; ++i) {
    const size_t before = mallinfo2().uordblks;
    const auto start = clock();
    tune::TuningTable table(log);
    table.open({"", path, ""});
    best = std::min(best, milliseconds(clock() - start));
    memory = mallinfo2().uordblks - before;
    ASSERT_EQ(table.found()[0].rows, uint64_t{kOperators} * kCells * 16);
  }
  std::printf("start with %d rows, %ju bytes: %.3f ms, %zu bytes of memory\n",
              kOperators * kCells * 16, static_cast<uintmax_t>(std::filesystem::file_size(path)),
              best, memory);
  // docs/tuning.md has the time of an optimised build.
  EXPECT_LE(best, 25.0);
  TunedStage tuned(bare({{"OPMUX_TUNING", path}}));
  const auto start = clock();
  tuned.ran(10);
  std::printf("first call of an operator with %d rows: %.3f ms\n", kCells * 16,
              milliseconds(clock() - start));
  EXPECT_EQ(tuned.stage.runtime.tuning().bundles()[0].counts.used, uint64_t{kCells});
}

}  // namespace
}  // namespace opmux::test
