#include "tuner/measure/tuning_run.hpp"

#include <algorithm>

#include "temporary_folder.hpp"
#include "timed_machine.hpp"

namespace opmux::tuner {
namespace {

class TuningRunTest : public testing::Test {
 protected:
  TuningRunTest() {
    machine_.kernels = {{"ref.loop", [](int64_t n) { return 400'000 + 30'000 * n; }},
                        {"acme.first", [](int64_t n) { return 100'000 + 2'000 * n; }},
                        {"acme.wide", [](int64_t n) { return 200'000 + 1'000 * n; }}};
    options_.budget_ns = 1'000'000'000'000;
    options_.tool = "0.1.0";
    options_.machine = {"cpu", "kernel"};
    hooks_.progress = [&](const RunProgress& progress) { shown_.push_back(progress.racing); };
    hooks_.finished = [&](const MeasuredCell&) { ++finished_; };
    hooks_.stop = [&] { return machine_.calls >= stop_after_; };
  }

  Status run(const std::vector<CellSpec>& specs) {
    cells_.clear();
    Runtime runtime = machine_.runtime();
    BuildFinder builds(machine_.runtime());
    Workbench workbench = Workbench::open(folder_.at("workbench.sqlite")).value();
    TuningRun tuning(runtime, builds, workbench, machine_.clock, machine_.quiet, options_, hooks_);
    return tuning.run(specs, cells_);
  }
  CellSpec over(int64_t first, int64_t last) {
    return {.op = "twice", .dtypes = {"f32"}, .over = tune::Range{"N", first, last}};
  }

  Machine machine_;
  test::TemporaryFolder folder_;
  RunOptions options_;
  RunHooks hooks_;
  std::vector<MeasuredCell> cells_;
  std::vector<std::string> shown_;
  size_t finished_ = 0;
  uint64_t stop_after_ = UINT64_MAX;
};

TEST_F(TuningRunTest, finds_where_the_winner_changes) {
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  ASSERT_EQ(cells_.size(), 1u);
  const MeasuredCell& cell = cells_[0];
  EXPECT_EQ(cell.op, "twice");
  EXPECT_NE(cell.schema_hash, 0u);
  EXPECT_EQ(text_of(cell.cell), "f32,f32 threads=1 eager");
  EXPECT_TRUE(cell.complete);
  EXPECT_GT(cell.races, 10u);
  EXPECT_EQ(finished_, 1u);
  // acme.wide is faster from 100 elements on.
  ASSERT_EQ(cell.ranges.size(), 2u);
  EXPECT_EQ(cell.ranges[0].range.first, 1);
  EXPECT_NEAR(static_cast<double>(cell.ranges[1].range.first), 103, 7);
  EXPECT_EQ(cell.ranges[1].range.last, 1024);
  EXPECT_EQ(winning_row(cell.ranges[0].rows), nullptr);
  const tune::TuningRow* const row = winning_row(cell.ranges[1].rows);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->implementation, (tune::Build{"acme.wide", "b1"}));
  EXPECT_EQ(row->baseline, (tune::Build{"acme.first", "b1"}));
  EXPECT_EQ(row->tool, "0.1.0");
  EXPECT_EQ(row->rigor, tune::Rigor::full) << "there was no second race";
  EXPECT_EQ(shown_.front(), "twice f32,f32 threads=1 eager, N=1");
}

TEST_F(TuningRunTest, leaves_out_an_implementation_with_wrong_results) {
  machine_.wrong = "acme.wide";
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  ASSERT_EQ(cells_[0].notes.size(), 1u);
  EXPECT_TRUE(cells_[0].notes[0].starts_with("acme.wide was left out: y[")) << cells_[0].notes[0];
  for (const MeasuredRange& range : cells_[0].ranges) {
    EXPECT_EQ(winning_row(range.rows), nullptr);
    for (const tune::TuningRow& row : range.rows) EXPECT_EQ(row.implementation.id, "ref.loop");
  }
}

TEST_F(TuningRunTest, the_baseline_is_the_first_with_right_results) {
  machine_.wrong = "acme.first";
  ASSERT_TRUE(run({{.op = "twice", .dtypes = {"f32"}, .dims = {{"N", 64}}}}).ok());
  ASSERT_EQ(cells_[0].ranges.size(), 1u);
  EXPECT_EQ(cells_[0].ranges[0].range, tune::Range());
  EXPECT_EQ(cells_[0].ranges[0].baseline.id, "acme.wide");
}

TEST_F(TuningRunTest, confirms_the_baseline_and_the_fastest_other) {
  std::vector<std::string> asked;
  hooks_.confirm = [&](const CellSpec&, int64_t value, const std::vector<std::string>& ids) {
    EXPECT_EQ(value, 0);
    asked = ids;
    MeasuredPoint point;
    point.baseline = {ids[0], "b1"};
    point.winner = ids[1];
    point.comparisons = {{{ids[1], "b1"}, -0.6, -0.7, -0.5, 10}};
    return std::optional<MeasuredPoint>(point);
  };
  ASSERT_TRUE(run({{.op = "twice", .dtypes = {"f32"}, .dims = {{"N", 1024}}}}).ok());
  EXPECT_EQ(asked, (std::vector<std::string>{"acme.first", "acme.wide"}));
  for (const tune::TuningRow& row : cells_[0].ranges[0].rows) {
    const bool raced_again = row.implementation.id == "acme.wide";
    EXPECT_EQ(row.rigor == tune::Rigor::confirmed, raced_again) << row.implementation.id;
  }
}

TEST_F(TuningRunTest, resumes_with_the_points_of_the_workbench) {
  ASSERT_TRUE(run({over(1, 64)}).ok());
  const MeasuredCell first = cells_[0];
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_EQ(cells_[0].races, first.races) << "without --resume everything is measured again";
  options_.resume = true;
  machine_.calls = 0;
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_EQ(cells_[0].races, 0u);
  EXPECT_EQ(cells_[0].reused, first.races);
  EXPECT_EQ(machine_.calls, 0u);
  ASSERT_EQ(cells_[0].ranges.size(), first.ranges.size());
  // Another set of implementations is another question.
  machine_.kernels.erase("acme.wide");
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_EQ(cells_[0].reused, 0u);
}

TEST_F(TuningRunTest, ends_when_the_budget_is_spent_and_goes_on_later) {
  options_.budget_ns = 500'000'000;
  ASSERT_TRUE(run({over(1, 1024), over(1, 32)}).ok());
  ASSERT_EQ(cells_.size(), 2u);
  EXPECT_FALSE(cells_[0].complete);
  EXPECT_GT(cells_[0].races, 0u);
  EXPECT_GT(cells_[1].races, 0u) << "each cell has its share";
  const size_t before = cells_[0].races;
  options_.budget_ns = 1'000'000'000'000;
  options_.resume = true;
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  EXPECT_TRUE(cells_[0].complete);
  EXPECT_GE(cells_[0].reused, before);
}

TEST_F(TuningRunTest, stops_when_it_is_told_to_and_keeps_whole_races) {
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  stop_after_ = machine_.calls + machine_.calls / 2;
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  EXPECT_FALSE(cells_[0].complete);
  EXPECT_GT(cells_[0].races, 0u);
  const size_t whole = cells_[0].races;
  stop_after_ = UINT64_MAX;
  options_.resume = true;
  options_.machine.soft = "kernel";
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  EXPECT_GE(cells_[0].reused, whole);
}

TEST_F(TuningRunTest, an_implementation_that_is_hopeless_has_no_row) {
  machine_.kernels["acme.slow"] = [](int64_t) { return 400'000'000; };
  ASSERT_TRUE(run({{.op = "twice", .dtypes = {"f32"}, .dims = {{"N", 64}}}}).ok());
  ASSERT_EQ(cells_[0].ranges.size(), 1u);
  for (const tune::TuningRow& row : cells_[0].ranges[0].rows)
    EXPECT_NE(row.implementation.id, "acme.slow");
  EXPECT_TRUE(cells_[0].notes.empty());
}

/// A kernel of another program that takes this long at most sizes.
struct Other {
  ExternalKernel kernel{"twice", {"engine.own", "e1"}};
  std::vector<ExternalRace> asked = {};

  Result<MeasuredPoint> race(const ExternalRace& race) {
    asked.push_back(race);
    const int64_t n = std::stoll(race.words.back().substr(2));
    const double ratio = n < 500 ? -0.4 : 0.4;
    MeasuredPoint point;
    point.baseline = race.against;
    point.winner = ratio < 0 ? "engine.own" : race.against.id;
    point.rigor = tune::Rigor::full;
    point.comparisons = {{race.kernel.build, ratio, ratio - 0.1, ratio + 0.1, 12}};
    return point;
  }
};

TEST_F(TuningRunTest, compares_kernels_of_others_with_what_runs) {
  Other other;
  hooks_.externals = [&] {
    return std::vector<ExternalKernel>{other.kernel, {"half", {"engine.own", "e1"}}};
  };
  hooks_.race_external = [&](const ExternalRace& race) { return other.race(race); };
  ASSERT_TRUE(run({over(1, 1024)}).ok());
  const MeasuredCell& cell = cells_[0];
  // acme.first runs up to about 100 elements, then acme.wide.
  ASSERT_EQ(cell.externals.size(), 3u);
  EXPECT_EQ(cell.externals[0].against, "acme.first");
  EXPECT_EQ(cell.externals[0].range, cell.ranges[0].range);
  EXPECT_EQ(cell.externals[1].against, "acme.wide");
  EXPECT_NEAR(static_cast<double>(cell.externals[1].range.last), 500, 32);
  EXPECT_EQ(cell.externals[2].range.last, 1024);
  ASSERT_EQ(cell.externals[1].rows.size(), 1u);
  const tune::TuningRow& row = cell.externals[1].rows[0];
  EXPECT_EQ(row.implementation, other.kernel.build);
  EXPECT_EQ(row.baseline, (tune::Build{"acme.wide", "b1"}));
  EXPECT_EQ(verdict_of(row), tune::Verdict::faster);
  EXPECT_EQ(row.tool, "0.1.0");
  EXPECT_EQ(verdict_of(cell.externals[2].rows[0]), tune::Verdict::slower);
  EXPECT_EQ(other.asked[0].words, (std::vector<std::string>{"x=f32", "N=1"}));
  // They are among the rows, and the choice among the others is as without them.
  EXPECT_EQ(winning_row(cell.ranges[1].rows)->implementation.id, "acme.wide");
  size_t written = 0;
  const tune::TuningSet set = rows_of(cells_, options_.machine);
  for (const tune::OperatorRows& one : set.operators) {
    for (const tune::TuningRow& each : one.rows)
      written += each.implementation == other.kernel.build ? 1 : 0;
  }
  EXPECT_EQ(written, 3u);
  const std::string text = report_of(cell);
  EXPECT_NE(text.find("engine.own, which opmux does not run, is 1.49x [1.35, 1.65] faster than "
                      "acme.wide"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("engine.own is 0.67x"), std::string::npos) << text;
}

TEST_F(TuningRunTest, resumes_races_with_kernels_of_others) {
  Other other;
  hooks_.externals = [&] { return std::vector{other.kernel}; };
  hooks_.race_external = [&](const ExternalRace& race) { return other.race(race); };
  ASSERT_TRUE(run({over(1, 64)}).ok());
  const size_t races = other.asked.size();
  ASSERT_GT(races, 0u);
  options_.resume = true;
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_EQ(other.asked.size(), races);
  EXPECT_EQ(cells_[0].externals.size(), 1u);
  other.kernel.build.build = "e2";
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_GT(other.asked.size(), races) << "another build is another kernel";
}

TEST_F(TuningRunTest, says_why_a_kernel_of_others_was_not_measured) {
  hooks_.externals = [] { return std::vector<ExternalKernel>{{"twice", {"engine.own", "e1"}}}; };
  hooks_.race_external = [&](const ExternalRace&) -> Result<MeasuredPoint> {
    return Status(Code::failed, "tune.python", "the Python worker ended");
  };
  ASSERT_TRUE(run({over(1, 64)}).ok());
  EXPECT_TRUE(cells_[0].externals.empty());
  EXPECT_FALSE(cells_[0].complete);
  EXPECT_NE(report_of(cells_[0]).find("engine.own was left out: the Python worker ended"),
            std::string::npos);
  EXPECT_FALSE(cells_[0].ranges.empty()) << "the others were measured";
}

}  // namespace
}  // namespace opmux::tuner
