#include "tune/tuning_view.hpp"

#include <vector>

namespace opmux::tune {
namespace {

using Speeds = std::vector<std::optional<MeasuredSpeed>>;

/// A log ratio with bounds at this distance.
MeasuredSpeed speed(double log_ratio, double error = 0.005) {
  return {log_ratio, log_ratio - error, log_ratio + error};
}
constexpr MeasuredSpeed kBaseline{};

TEST(TuningView, the_verdict_needs_the_whole_interval_and_more_than_a_percent) {
  EXPECT_EQ(verdict_of(-0.02, -0.03, -0.001), Verdict::faster);
  EXPECT_EQ(verdict_of(-0.02, -0.05, 0.001), Verdict::unclear) << "it may be slower";
  EXPECT_EQ(verdict_of(-0.009, -0.02, -0.001), Verdict::unclear) << "it may be a tie";
  EXPECT_EQ(verdict_of(-0.005, -0.009, 0.001), Verdict::same);
  EXPECT_EQ(verdict_of(0.02, 0.001, 0.03), Verdict::slower);
}

TEST(TuningView, bounds_of_two_candidates_add_up) {
  EXPECT_EQ(compare(speed(-0.3), speed(-0.1)), Verdict::faster);
  EXPECT_EQ(compare(speed(-0.1), speed(-0.3)), Verdict::slower);
  EXPECT_EQ(compare(speed(-0.3, 0.15), speed(-0.1, 0.15)), Verdict::unclear);
  EXPECT_EQ(compare(speed(-0.3, 0.001), speed(-0.301, 0.001)), Verdict::same);
}

TEST(TuningView, the_first_stays_unless_it_has_a_speed_and_loses) {
  EXPECT_EQ(fastest(Speeds{}), 0u);
  EXPECT_EQ(fastest(Speeds{std::nullopt, speed(-1)}), 0u);
  EXPECT_EQ(fastest(Speeds{kBaseline, std::nullopt}), 0u);
  EXPECT_EQ(fastest(Speeds{kBaseline, speed(-0.009)}), 0u);
  EXPECT_EQ(fastest(Speeds{kBaseline, speed(-0.1)}), 1u);
  EXPECT_EQ(fastest(Speeds{kBaseline, speed(-0.1, 0.2)}), 0u) << "unclear";
  EXPECT_EQ(fastest(Speeds{speed(-0.2), kBaseline}), 0u);
  EXPECT_EQ(fastest(Speeds{speed(0.2), kBaseline}), 1u) << "the baseline need not be the first";
}

TEST(TuningView, of_several_faster_ones_the_fastest_wins) {
  EXPECT_EQ(fastest(Speeds{kBaseline, speed(-0.1), std::nullopt, speed(-0.5), speed(-0.3)}), 3u);
}

TEST(TuningView, of_those_that_tie_with_the_fastest_the_one_with_the_highest_score_wins) {
  EXPECT_EQ(fastest(Speeds{kBaseline, speed(-0.1), speed(-0.495), speed(-0.5)}), 2u);
}

}  // namespace
}  // namespace opmux::tune
