#include "regret/regret.hpp"

#include <cmath>
#include <random>

#include "regret/repeats.hpp"
#include "regret/transfer.hpp"
#include "timed_machine.hpp"
#include "tuner/measure/cell_spec.hpp"

namespace opmux::bench {
namespace {

class OracleTest : public testing::Test {
 protected:
  OracleTest() {
    machine_.kernels = {{"ref.loop", [](int64_t n) { return 400'000 + 30'000 * n; }},
                        {"acme.first", [](int64_t n) { return 100'000 + 2'000 * n; }},
                        {"acme.wide", [](int64_t n) { return 200'000 + 1'000 * n; }}};
  }
  Oracle measure(int64_t n,
                 std::vector<std::string> ids = {"ref.loop", "acme.first", "acme.wide"}) {
    Runtime runtime = machine_.runtime();
    const tuner::CellSpec spec{.op = "twice", .dtypes = {"f32"}, .dims = {{"N", n}}};
    const auto plan = tuner::CellPlan::make(runtime.op("twice").value(), spec, 1).value();
    const tune::race::Environment environment{machine_.clock, machine_.quiet,
                                              [this] { return order_(); }};
    return Oracle::measure(runtime, plan, 0, ids, {.rounds = 40}, environment).value();
  }

  tuner::Machine machine_;
  std::mt19937_64 order_{1};
};

TEST_F(OracleTest, finds_the_fastest_and_how_much_longer_others_take) {
  const Oracle small = measure(1), large = measure(1024);
  EXPECT_EQ(small.best(), "acme.first");
  EXPECT_EQ(large.best(), "acme.wide");
  EXPECT_EQ(large.rounds(), 40u);
  EXPECT_NEAR(large.ratio("acme.first", "acme.wide").center, std::log(2148.0 / 1224.0), 1e-6);
  EXPECT_EQ(large.ratio("acme.wide", "acme.wide").center, 0);
  EXPECT_NEAR(large.gap(), 2148.0 / 1224.0 - 1, 1e-6);
}

TEST_F(OracleTest, ends_an_implementation_that_is_far_behind) {
  machine_.calls = 0;
  const Oracle oracle = measure(1024);
  EXPECT_TRUE(oracle.has("ref.loop"));
  EXPECT_EQ(oracle.ratio("ref.loop", "acme.wide").rounds, 20u);
  EXPECT_FALSE(oracle.has("acme.other"));
}

TEST_F(OracleTest, judges_the_choices_of_a_cell) {
  RegretOfCell cell{.name = "twice", .untuned = "acme.first", .tuned = "acme.wide"};
  judge(measure(1024), cell);
  EXPECT_EQ(cell.problem, "");
  EXPECT_EQ(cell.tuned_regret, 0);
  EXPECT_NEAR(cell.untuned_regret, 2148.0 / 1224.0 - 1, 1e-6);
  EXPECT_GT(cell.proven_gap, 0.7);
  EXPECT_LT(cell.surely_slower, 0);
  RegretOfCell wrong{.name = "twice", .untuned = "acme.wide", .tuned = "acme.first"};
  judge(measure(1024), wrong);
  EXPECT_GT(wrong.surely_slower, 0.7);
  RegretOfCell unknown{.name = "twice", .untuned = "acme.wide", .tuned = "acme.gone"};
  judge(measure(1024), unknown);
  EXPECT_NE(unknown.problem, "");
}

RegretOfCell cell_with(double tuned, double untuned, bool verdict = true) {
  RegretOfCell cell{.name = "cell", .untuned = "a", .tuned = "b", .best = "b"};
  cell.has_verdict = verdict;
  cell.tuned_regret = tuned;
  cell.untuned_regret = cell.proven_gap = untuned;
  cell.surely_slower = tuned - untuned;
  return cell;
}

TEST(RegretSummary, counts_cells_with_a_verdict_and_gaps_without_one) {
  const RegretSummary summary =
      summary_of(std::vector{cell_with(0, 0.1), cell_with(0.01, 0.02), cell_with(0.2, 0.2, false)});
  EXPECT_EQ(summary.judged, 3u);
  EXPECT_EQ(summary.verdicts, 2u);
  EXPECT_DOUBLE_EQ(summary.mean, 0.005);
  EXPECT_DOUBLE_EQ(summary.worst, 0.01);
  EXPECT_DOUBLE_EQ(summary.untuned_mean, 0.06);
  EXPECT_EQ(summary.gaps, 2u);
  EXPECT_EQ(summary.gaps_with_verdict, 1u);
  EXPECT_EQ(misses(summary, 1).size(), 1u) << "a verdict in one of two cells with a gap";
  EXPECT_TRUE(misses(summary, 2).empty());
}

TEST(RegretSummary, misses_each_limit) {
  EXPECT_TRUE(misses(summary_of(std::vector{cell_with(0, 0.1)}), 1).empty());
  EXPECT_EQ(misses(summary_of(std::vector<RegretOfCell>{}), 1).size(), 1u) << "nothing was judged";
  EXPECT_EQ(misses(summary_of(std::vector{cell_with(0.04, 0.1)}), 1).size(), 3u)
      << "mean, p99 and worst";
  EXPECT_EQ(misses(summary_of(std::vector{cell_with(0.004, 0.004), cell_with(0.02, 0)}), 1).size(),
            2u)
      << "mean, and slower with rows";
}

TEST(RepeatSummary, counts_choices_that_differ_from_most_of_their_cell) {
  const RepeatedCell steady{"steady", {"a", "a", "a", "a"}, 0.1};
  const RepeatedCell tied{"tied", {"a", "b", "a", "b"}, 0.001};
  const RepeatSummary summary = summary_of(std::vector{steady, tied});
  EXPECT_EQ(summary.tunings, 8u);
  EXPECT_EQ(summary.differing, 2u);
  EXPECT_EQ(misses(summary, 1).size(), 1u) << "2 of 8";
  EXPECT_TRUE(misses(summary, 20).empty());
  EXPECT_TRUE(misses(summary_of(std::vector{steady}), 1).empty());
  EXPECT_EQ(misses(summary_of(std::vector<RepeatedCell>{}), 1).size(), 1u) << "nothing was tuned";
  // 1 of 100 is within 2 %, but not in a cell with a gap.
  RepeatedCell flipping{"flipping", std::vector<std::string>(100, "a"), 0.05};
  flipping.choices[7] = "b";
  EXPECT_EQ(misses(summary_of(std::vector{flipping}), 1).size(), 1u);
  flipping.gap = 0.02;
  EXPECT_TRUE(misses(summary_of(std::vector{flipping}), 1).empty());
}

TEST(TransferSummary, has_the_quantiles_of_the_regret) {
  std::vector<TransferPoint> points;
  for (int i = 1; i <= 100; ++i) points.push_back({"p", "a", "b", i / 10'000.0});
  const TransferSummary summary = summary_of(points);
  EXPECT_DOUBLE_EQ(summary.median, 0.005);
  EXPECT_DOUBLE_EQ(summary.p95, 0.0095);
  EXPECT_DOUBLE_EQ(summary.worst, 0.01);
  EXPECT_TRUE(misses(summary, 1).empty());
  EXPECT_EQ(misses(summary, 0.5).size(), 1u);
  EXPECT_EQ(misses(summary_of(std::vector<TransferPoint>{}), 1).size(), 1u);
}

}  // namespace
}  // namespace opmux::bench
