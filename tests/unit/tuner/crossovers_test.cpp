#include "tuner/crossovers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "racing/simulated_machine.hpp"
#include "tune/race/race.hpp"

namespace opmux::tuner {
namespace {

/// An operator whose winner is known for each value.
class Known {
 public:
  explicit Known(std::vector<std::pair<int64_t, std::string>> from) : from_(std::move(from)) {}

  std::string winner(int64_t value) const {
    std::string found;
    for (const auto& [first, winner] : from_) {
      if (value >= first) found = winner;
    }
    return found;
  }
  Crossovers find(int64_t first, int64_t last, const CrossoverOptions& options = {}) {
    return find_crossovers(
        first, last,
        [&](int64_t value) -> std::optional<RaceOutcome> {
          asked.push_back(value);
          if (asked.size() > most) return std::nullopt;
          return RaceOutcome{"base", winner(value)};
        },
        [&] { return random_(); }, options);
  }

  std::vector<int64_t> asked;
  size_t most = 1000;

 private:
  std::vector<std::pair<int64_t, std::string>> from_;
  std::mt19937_64 random_{7};
};

std::vector<std::pair<int64_t, std::string>> firsts(const Crossovers& found) {
  std::vector<std::pair<int64_t, std::string>> all;
  for (const Stretch& stretch : found.stretches)
    all.emplace_back(stretch.first, stretch.outcome.winner);
  return all;
}

/// Each stretch begins where the one before ends, and was measured at its ends' side.
void expect_whole(const Crossovers& found, int64_t first, int64_t last) {
  ASSERT_FALSE(found.stretches.empty());
  EXPECT_EQ(found.stretches.front().first, first);
  EXPECT_EQ(found.stretches.back().last, last);
  for (size_t i = 1; i < found.stretches.size(); ++i)
    EXPECT_EQ(found.stretches[i].first, found.stretches[i - 1].last + 1);
  for (const Stretch& stretch : found.stretches) {
    ASSERT_FALSE(stretch.measured.empty());
    EXPECT_TRUE(std::ranges::is_sorted(stretch.measured));
    EXPECT_GE(stretch.measured.front(), stretch.first);
    EXPECT_LE(stretch.measured.back(), stretch.last);
  }
}

TEST(Crossovers, are_found_between_the_powers_of_two) {
  Known known({{1, "base"}, {5, "gemm"}, {96, "base"}});
  const Crossovers found = known.find(1, 256);
  ASSERT_EQ(found.stretches.size(), 3u);
  expect_whole(found, 1, 256);
  EXPECT_EQ(found.stretches[1].first, 5);
  // To a sixteenth of the value, on the side where the choice by score stays.
  EXPECT_GE(found.stretches[1].last, 89);
  EXPECT_LE(found.stretches[1].last, 95);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.disagreed, 0u);
  EXPECT_LE(known.asked.size(), 22u);
}

TEST(Crossovers, of_one_winner_need_the_grid_and_one_check) {
  Known known({{1, "gemm"}});
  const Crossovers found = known.find(3, 100);
  ASSERT_EQ(found.stretches.size(), 1u);
  expect_whole(found, 3, 100);
  // The random value may be one of the grid.
  ASSERT_EQ(known.asked.size(), 7 + found.checked);
  const std::vector<int64_t> grid(known.asked.begin(), known.asked.begin() + 7);
  EXPECT_EQ(grid, (std::vector<int64_t>{3, 4, 8, 16, 32, 64, 100}));
}

TEST(Crossovers, between_powers_of_two_are_found_by_the_random_check) {
  // Only the random value can see this stretch; some seeds find it.
  size_t seen = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    const Crossovers found = find_crossovers(
        1, 1024,
        [](int64_t value) {
          return RaceOutcome{"base", value > 520 && value < 1000 ? "gemm" : "base"};
        },
        [&] { return random(); });
    expect_whole(found, 1, 1024);
    if (found.disagreed == 0) continue;
    ++seen;
    ASSERT_EQ(found.stretches.size(), 3u);
    EXPECT_NEAR(static_cast<double>(found.stretches[1].first), 521, 40);
    EXPECT_NEAR(static_cast<double>(found.stretches[1].last), 999, 63);
  }
  EXPECT_GT(seen, 10u);
}

TEST(Crossovers, are_at_most_eight) {
  std::vector<std::pair<int64_t, std::string>> from;
  for (int64_t first = 1, i = 0; first <= 4096; first *= 2, ++i)
    from.emplace_back(first, i % 2 == 0 ? "base" : "gemm");
  Known known(from);
  const Crossovers found = known.find(1, 4096);
  EXPECT_LE(found.stretches.size(), 9u);
  EXPECT_GE(found.stretches.size(), 5u);
  expect_whole(found, 1, 4096);
  EXPECT_LE(Known(from).find(1, 4096, {.most_thresholds = 2}).stretches.size(), 3u);
}

TEST(Crossovers, leave_out_what_was_not_measured_when_the_search_ends) {
  Known known({{1, "base"}, {40, "gemm"}});
  known.most = 9;  // the grid of 1 to 256
  const Crossovers found = known.find(1, 256);
  EXPECT_FALSE(found.complete);
  ASSERT_EQ(found.stretches.size(), 2u);
  EXPECT_EQ(found.stretches[0].last, 32);
  EXPECT_EQ(found.stretches[1].first, 64) << "33 to 63 are in no range";
  known.asked.clear();
  known.most = 3;
  const Crossovers start = known.find(1, 256);
  ASSERT_EQ(start.stretches.size(), 1u);
  EXPECT_EQ(start.stretches[0].last, 4);
  known.asked.clear();
  known.most = 0;
  EXPECT_TRUE(known.find(1, 256).stretches.empty());
}

TEST(Crossovers, measure_no_value_twice_and_a_limited_number) {
  std::mt19937_64 noise(3);
  std::map<int64_t, int> asked;
  const Crossovers found = find_crossovers(
      1, 1 << 20,
      [&](int64_t value) {
        ++asked[value];
        return RaceOutcome{"base", std::to_string(noise() % 3)};
      },
      [&] { return noise(); });
  EXPECT_LE(asked.size(), 64u);
  for (const auto& [value, times] : asked) EXPECT_EQ(times, 1) << value;
  EXPECT_LE(found.stretches.size(), 9u);
}

TEST(Crossovers, a_single_value_is_a_stretch) {
  Known known({{1, "gemm"}});
  const Crossovers found = known.find(7, 7);
  EXPECT_EQ(firsts(found), (std::vector<std::pair<int64_t, std::string>>{{7, "gemm"}}));
  EXPECT_EQ(known.asked.size(), 1u);
}

/// Two kernels on a simulated machine: `base` has a shorter start, `gemm` is faster per row.
TEST(Crossovers, of_races_with_noise_are_near_the_true_ones) {
  size_t near = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    uint64_t race = 0;
    std::mt19937_64 random(seed);
    const Crossovers found = find_crossovers(
        1, 256,
        [&](int64_t rows) {
          const auto count = static_cast<double>(rows);
          tune::race::SimulatedMachine machine(seed * 1000 + ++race);
          const tune::race::Result result =
              machine.race({{.call_ns = 20'000 + 1000 * count}, {.call_ns = 40'000 + 500 * count}});
          return RaceOutcome{"base", result.winner == 0 ? "base" : "gemm"};
        },
        [&] { return random(); });
    expect_whole(found, 1, 256);
    // They take as long at 40 rows; at 41 rows the gap is 1 %, and at 44 rows 3 %.
    for (const Stretch& stretch : found.stretches) {
      const std::string& winner = stretch.outcome.winner;
      EXPECT_TRUE(stretch.first > 20 || winner == "base") << "seed " << seed;
      EXPECT_TRUE(stretch.last < 128 || winner == "gemm") << "seed " << seed;
    }
    const bool two = found.stretches.size() == 2;
    near += two && found.stretches[1].first >= 40 && found.stretches[1].first <= 48 ? 1 : 0;
  }
  EXPECT_GE(near, 18u);
}

}  // namespace
}  // namespace opmux::tuner
