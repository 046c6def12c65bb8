#include "tune/race/paired_ratios.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace opmux::tune::race {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(PairedRatios, OutliersDoNotMoveTheCenter) {
  std::vector<double> values{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08};
  const TrimmedMean before = trimmed_mean(values);
  values = {-50, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 70};
  const TrimmedMean after = trimmed_mean(values);
  EXPECT_NEAR(before.mean, 0.045, 1e-12);
  EXPECT_NEAR(after.mean, before.mean, 1e-12);
  EXPECT_NEAR(after.error, before.error, 1e-12);
}

TEST(PairedRatios, TheErrorIsThatOfTukeyAndMcLaughlin) {
  // Moved to the nearest kept value: 2 2 3 4 5 6 7 7, variance 30 / 7. Three of four values are
  // kept.
  std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NEAR(trimmed_mean(values).error, std::sqrt(30.0 / 7) / (0.75 * std::sqrt(8.0)), 1e-12);
}

TEST(PairedRatios, FewerThanEightRoundsHaveNoBounds) {
  PairedRatios ratios(2);
  for (int round = 0; round < 7; ++round) ratios.add_round(std::array{0.5, 0.0});
  EXPECT_EQ(ratios.ratio(0, 1).center, 0.5);
  EXPECT_TRUE(std::isinf(ratios.ratio(0, 1).low));
  EXPECT_TRUE(std::isinf(ratios.ratio(0, 1).high));
  ratios.add_round(std::array{0.5, 0.0});
  EXPECT_EQ(ratios.ratio(0, 1).low, 0.5);
  EXPECT_EQ(ratios.ratio(0, 1).high, 0.5);
}

TEST(PairedRatios, AChangeOfSpeedBetweenRoundsCancels) {
  PairedRatios ratios(2);
  for (int round = 0; round < 12; ++round) {
    const double speed = round * 0.3;
    ratios.add_round(std::array{speed, speed + 0.02});
  }
  EXPECT_NEAR(ratios.ratio(1, 0).center, 0.02, 1e-12);
  EXPECT_NEAR(ratios.ratio(1, 0).high, 0.02, 1e-12);
}

TEST(PairedRatios, OnlyRoundsInWhichBothRanCount) {
  PairedRatios ratios(3);
  for (int round = 0; round < 10; ++round)
    ratios.add_round(std::array{0.0, 0.1, round < 8 ? 0.2 : kNone});
  EXPECT_EQ(ratios.rounds(), 10U);
  EXPECT_EQ(ratios.ratio(1, 0).rounds, 10U);
  EXPECT_EQ(ratios.ratio(2, 0).rounds, 8U);
  EXPECT_NEAR(ratios.ratio(2, 1).center, 0.1, 1e-12);
}

TEST(PairedRatios, ADeviationOfZeroDoesNotProveThatAllValuesAgree) {
  // A processor with two speeds: seven of eight rounds saw the same pair of speeds. The kept
  // values do not deviate at all, but one round contradicts.
  PairedRatios ratios(2);
  for (int round = 0; round < 8; ++round) ratios.add_round(std::array{0.1, round == 0 ? 0.2 : 0.0});
  const Interval interval = ratios.ratio(1, 0);
  EXPECT_NEAR(interval.center, -0.1, 1e-12);
  EXPECT_GT(interval.high, 0);
}

TEST(PairedRatios, FasterNeedsMoreEvidenceThanSlower) {
  for (const size_t rounds : {8U, 12U, 40U, 200U})
    EXPECT_GT(faster_errors(rounds, 1), slower_errors(rounds));
  EXPECT_GT(faster_errors(8, 1), faster_errors(12, 1));
  EXPECT_GT(faster_errors(8, 15), faster_errors(8, 1));
}

}  // namespace
}  // namespace opmux::tune::race
