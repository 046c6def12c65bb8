#include "tuner/measured_point.hpp"

#include "rows.hpp"

namespace opmux::tuner {
namespace {

using tune::Rigor;
using tune::Verdict;

const tune::Build kBase{"onednn.dense", "a1"}, kGemm{"openblas.gemm", "b2"}, kSlow{"ref.loop", ""};

MeasuredPoint point(double log_ratio, double width = 0.05) {
  MeasuredPoint made;
  made.baseline = kBase;
  made.winner = log_ratio < 0 ? kGemm.id : kBase.id;
  made.comparisons = {{kGemm, log_ratio, log_ratio - width, log_ratio + width, 20}};
  made.rigor = Rigor::full;
  made.day = 20773;
  return made;
}

std::vector<tune::TuningRow> rows(const std::vector<MeasuredPoint>& points) {
  return rows_of(testing::row().cell, {"M", 5, 95}, points);
}

TEST(MeasuredPoint, is_the_same_after_it_was_written) {
  MeasuredPoint made = point(-0.5);
  made.comparisons.push_back({kSlow, 3.25, 3, 3.5, 8});
  const Result<MeasuredPoint> read = read_point(text_of(made));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, made);
  EXPECT_EQ(made.outcome(), (RaceOutcome{"onednn.dense", "openblas.gemm"}));
  EXPECT_FALSE(made.outcome().keeps());
}

MeasuredPoint lost_point() {
  MeasuredPoint made = point(-0.5);
  made.comparisons.clear();
  made.winner = made.baseline.id;
  made.dropped = 31;
  made.noise = tune::race::Noise::steal;
  return made;
}

TEST(MeasuredPoint, keeps_the_dropped_rounds_and_their_cause) {
  const Result<MeasuredPoint> read = read_point(text_of(lost_point()));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, lost_point());
  EXPECT_TRUE(read->is_lost());
  EXPECT_FALSE(point(-0.5).is_lost());
}

TEST(MeasuredPoint, parts_without_a_comparison_get_a_range_without_rows) {
  const Stretch whole{5, 300, {5, 8, 16, 32, 64, 256}, {"onednn.dense", "onednn.dense"}};
  std::map<int64_t, MeasuredPoint> points;
  for (const int64_t value : {5, 8, 256}) points.emplace(value, point(0.5));
  for (const int64_t value : {16, 32, 64}) points.emplace(value, lost_point());
  const std::vector<Stretch> parts = parts_of(whole, points);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0], (Stretch{5, 8, {5, 8}, whole.outcome}));
  EXPECT_EQ(parts[1], (Stretch{9, 255, {16, 32, 64}, whole.outcome}));
  EXPECT_EQ(parts[2], (Stretch{256, 300, {256}, whole.outcome}));
}

TEST(MeasuredPoint, that_is_malformed_is_refused) {
  const std::string whole = text_of(point(-0.5));
  for (const std::string& text :
       {std::string(), std::string("baseline a@b\n"), whole + "unknown 3\n", whole + "day x\n",
        whole + "rigor hasty\n", whole + "dropped x steal\n", whole + "dropped 3 cats\n",
        whole + "compared a@b 1 2\n", whole + "compared a@b 1 2 inf 3\n"}) {
    const Result<MeasuredPoint> read = read_point(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().reason(), "tune.point");
  }
}

TEST(MeasuredPoint, rows_of_a_range_contain_every_interval) {
  const auto made = rows({point(-0.8), point(-0.4, 0.1), point(-0.6)});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].implementation, kGemm);
  EXPECT_EQ(made[0].baseline, kBase);
  EXPECT_NEAR(made[0].log_ratio, -0.6, 1e-9);
  EXPECT_NEAR(made[0].low, -0.85, 1e-9);
  EXPECT_NEAR(made[0].high, -0.3, 1e-9);
  EXPECT_EQ(made[0].rounds, 60u);
  EXPECT_EQ(made[0].rigor, Rigor::full);
  EXPECT_EQ(verdict_of(made[0]), Verdict::faster);
}

TEST(MeasuredPoint, a_range_is_not_faster_if_one_point_is_not) {
  const auto made = rows({point(-0.8), point(0.02)});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(verdict_of(made[0]), Verdict::unclear);
  EXPECT_EQ(winning_row(made), nullptr);
}

TEST(MeasuredPoint, an_implementation_that_one_point_lacks_has_no_row) {
  MeasuredPoint both = point(-0.8);
  both.comparisons.push_back({kSlow, 1, 0.9, 1.1, 8});
  const auto made = rows({both, point(-0.7)});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].implementation, kGemm);
}

TEST(MeasuredPoint, points_with_other_baselines_or_builds_give_no_rows) {
  MeasuredPoint other = point(-0.8);
  other.baseline = kSlow;
  EXPECT_TRUE(rows({point(-0.8), other}).empty());
  MeasuredPoint rebuilt = point(-0.8);
  rebuilt.comparisons[0].implementation.build = "c3";
  EXPECT_TRUE(rows({point(-0.8), rebuilt}).empty());
  EXPECT_TRUE(rows({}).empty());
}

TEST(MeasuredPoint, the_least_careful_point_gives_the_rigor) {
  MeasuredPoint quick = point(-0.8);
  quick.rigor = Rigor::quick;
  EXPECT_EQ(rows({point(-0.8), quick})[0].rigor, Rigor::quick);
}

TEST(MeasuredPoint, a_second_race_confirms_or_widens) {
  auto confirmed = rows({point(-0.8)});
  add_confirmation(confirmed, point(-0.7));
  EXPECT_EQ(confirmed[0].rigor, Rigor::confirmed);
  EXPECT_NEAR(confirmed[0].log_ratio, -0.75, 1e-9);
  EXPECT_NEAR(confirmed[0].high, -0.65, 1e-9);
  EXPECT_EQ(confirmed[0].rounds, 40u);

  auto contradicted = rows({point(-0.8)});
  add_confirmation(contradicted, point(0.3));
  EXPECT_EQ(contradicted[0].rigor, Rigor::full);
  EXPECT_EQ(verdict_of(contradicted[0]), Verdict::unclear);

  auto other = rows({point(-0.8)});
  MeasuredPoint of_another = point(-0.8);
  of_another.baseline = kSlow;
  add_confirmation(other, of_another);
  EXPECT_EQ(other[0].rigor, Rigor::full);
}

TEST(MeasuredPoint, the_fastest_row_wins) {
  MeasuredPoint two = point(-0.4);
  two.comparisons.push_back({kSlow, -0.9, -1, -0.8, 8});
  const auto made = rows({two});
  ASSERT_NE(winning_row(made), nullptr);
  EXPECT_EQ(winning_row(made)->implementation, kSlow);
}

}  // namespace
}  // namespace opmux::tuner
