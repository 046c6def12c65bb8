#include "tuner/merge.hpp"

#include <algorithm>
#include <cmath>

#include "rows.hpp"

namespace opmux::tuner {
namespace {

using testing::row;
using testing::set_of;
using tune::TuningRow;
using tune::TuningSet;
using tune::Verdict;

std::vector<TuningRow> merged(std::vector<TuningRow> rows) {
  std::vector<TuningSet> sets;
  for (TuningRow& one : rows) sets.push_back(set_of({std::move(one)}));
  const TuningSet result = merge(sets).value();
  EXPECT_EQ(result.operators.size(), 1u);
  return result.operators.at(0).rows;
}

TEST(Merge, rows_of_two_hosts_that_agree_have_a_smaller_interval) {
  const auto rows = merged({row(-0.8, 0.02), row(-0.8, 0.02)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].log_ratio, -0.8, 1e-4);
  EXPECT_NEAR(rows[0].high - rows[0].low, 0.12 / std::sqrt(2.0), 1e-3);
  EXPECT_EQ(rows[0].rounds, 40u);
}

TEST(Merge, the_result_is_between_the_hosts_and_never_the_best_of_them) {
  const auto rows = merged({row(-0.8, 0.01), row(-0.4, 0.01), row(-0.6, 0.01)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].log_ratio, -0.6, 1e-3);
  EXPECT_LT(rows[0].low, -0.8) << "hosts that differ widen the interval";
  EXPECT_GT(rows[0].high, -0.4);
}

TEST(Merge, a_precise_row_weighs_more_than_a_noisy_one) {
  const auto rows = merged({row(-0.80, 0.005), row(-0.75, 0.05)});
  EXPECT_NEAR(rows.at(0).log_ratio, -0.80, 0.01);
}

TEST(Merge, hosts_that_contradict_each_other_make_the_row_unclear) {
  std::vector<TuningRow> hosts(9, row(-0.8, 0.001));
  hosts.push_back(row(0.1, 0.001));
  const auto rows = merged(hosts);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(verdict_of(rows[0]), Verdict::unclear);
}

TEST(Merge, ranges_are_pooled_where_they_overlap) {
  const auto rows = merged({row(-0.8, 0.02, 5, 95), row(-0.8, 0.02, 50, 200)});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].range, (tune::Range{"M", 5, 49}));
  EXPECT_EQ(rows[0].rounds, 20u);
  EXPECT_EQ(rows[1].range, (tune::Range{"M", 50, 95}));
  EXPECT_EQ(rows[1].rounds, 40u);
  EXPECT_EQ(rows[2].range, (tune::Range{"M", 96, 200}));
}

TEST(Merge, a_range_up_to_the_largest_number_stays_whole) {
  const auto rows = merged({row(-0.8, 0.02, 5, INT64_MAX), row(-0.8, 0.02, 5, INT64_MAX)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].range.last, INT64_MAX);
}

TEST(Merge, rows_of_other_builds_and_baselines_are_kept_apart) {
  TuningRow rebuilt = row(), other_baseline = row();
  rebuilt.implementation.build = "ffff";
  other_baseline.baseline.id = "simd.avx2";
  EXPECT_EQ(merged({row(), rebuilt, other_baseline}).size(), 3u);
}

TEST(Merge, rigor_and_date_are_those_of_the_weakest_row) {
  TuningRow quick = row();
  quick.rigor = tune::Rigor::quick;
  quick.day -= 100;
  quick.host = 1;
  const auto rows = merged({row(), quick});
  EXPECT_EQ(rows.at(0).rigor, tune::Rigor::quick);
  EXPECT_EQ(rows.at(0).day, row().day - 100);
  EXPECT_EQ(rows.at(0).host, 0u) << "of several hosts";
}

TEST(Merge, machines_of_another_kind_are_kept_apart_and_another_kernel_is_noted) {
  TuningSet kernel = set_of({row()}), processor = set_of({row()});
  kernel.machines[0].soft = "kernel=6.2.0 microcode=0x1";
  processor.machines[0].hard = "AuthenticAMD 26-2-1";
  const TuningSet result = merge({set_of({row()}), kernel, processor}).value();
  ASSERT_EQ(result.machines.size(), 2u);
  EXPECT_EQ(result.machines[0].soft, "several");
  EXPECT_EQ(result.operators.size(), 2u);
}

TEST(Merge, rows_measured_by_other_rules_are_refused) {
  TuningSet other = set_of({row()});
  other.measurement = 2;
  EXPECT_EQ(merge({set_of({row()}), other}).error().reason(), "tune.merge");
  EXPECT_TRUE(merge({}).value().operators.empty());
}

TEST(Merge, compare_looks_at_every_row_about_one_question) {
  tune::TuningSet set = set_of({row(-0.8)});
  set.operators.push_back({"matmul", 8, 0, {row(-0.2)}});  // another schema
  set.machines.push_back({set.machines[0].hard, "kernel=6.6.0"});
  set.operators.push_back({"matmul", set.operators[0].schema_hash, 1, {row(-0.5)}});
  tune::TuningSet turned = set;
  std::ranges::reverse(turned.operators);
  EXPECT_TRUE(compare(set, turned).empty());
  for (tune::OperatorRows& one : turned.operators) {
    const tune::TuningRow kept = one.rows[0];
    one.rows[0] = row(0.3);
    const auto changes = compare(set, turned);
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].before, kept);
    EXPECT_EQ(changes[0].after, row(0.3));
    one.rows[0] = kept;
  }
  turned.operators[1].schema_hash = 9;
  EXPECT_EQ(compare(set, turned).size(), 2u) << "one row is gone, and one is new";
}

TEST(Merge, compare_names_every_kind_of_change) {
  using Kind = RowChange::Kind;
  const TuningSet before = set_of({row(-0.8, 0.02, 1, 4), row(-0.8), row(-0.8, 0.02, 96, 99)});
  const TuningSet after = set_of({row(-0.7), row(0.8, 0.02, 96, 99), row(0.1, 0.02, 100, 200)});
  const auto changes = compare(before, after);
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].kind, Kind::removed);
  EXPECT_EQ(changes[1].kind, Kind::measured);
  EXPECT_EQ(changes[2].kind, Kind::verdict);
  EXPECT_EQ(changes[3].kind, Kind::added);
  EXPECT_TRUE(compare(before, before).empty());
}

}  // namespace
}  // namespace opmux::tuner
