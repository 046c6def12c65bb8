#include "tune/tuning_view.hpp"

#include <vector>

namespace opmux::tune {
namespace {

using Rows = std::vector<std::optional<TuningRow>>;

TEST(TuningView, clearly_faster_is_more_than_three_percent_and_two_sigma) {
  EXPECT_TRUE(clearly_faster({96.9, 0}, {100, 0}));
  EXPECT_FALSE(clearly_faster({97, 0}, {100, 0}));
  EXPECT_FALSE(clearly_faster({91, 5}, {100, 0})) << "noise of the other row";
  EXPECT_FALSE(clearly_faster({91, 0}, {100, 5})) << "noise of its row";
  EXPECT_TRUE(clearly_faster({89, 5}, {100, 5}));
  EXPECT_FALSE(clearly_faster({110, 0}, {100, 0}));
}

TEST(TuningView, the_first_stays_unless_it_has_a_row_and_loses) {
  EXPECT_EQ(fastest(Rows{}), 0u);
  EXPECT_EQ(fastest(Rows{std::nullopt, TuningRow{1, 0}}), 0u);
  EXPECT_EQ(fastest(Rows{TuningRow{100, 0}, std::nullopt}), 0u);
  EXPECT_EQ(fastest(Rows{TuningRow{100, 0}, TuningRow{99, 0}}), 0u);
  EXPECT_EQ(fastest(Rows{TuningRow{100, 0}, TuningRow{90, 0}}), 1u);
}

TEST(TuningView, of_several_clearly_faster_ones_the_fastest_wins) {
  EXPECT_EQ(fastest(Rows{TuningRow{100, 0}, TuningRow{90, 0}, std::nullopt, TuningRow{80, 0},
                         TuningRow{85, 0}}),
            3u);
}

}  // namespace
}  // namespace opmux::tune
