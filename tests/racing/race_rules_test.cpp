// The rules of a race, each with simulated kernels that show it without or with little noise.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "simulated_machine.hpp"

namespace opmux::tune::race {
namespace {

constexpr Disturbance kQuiet{.sample_noise = 0.0005, .drift = 0.02, .outliers = 0};

TEST(RaceRules, TheFastestWinsAndTheOthersLeaveAtTheFirstLook) {
  SimulatedMachine machine(1, kQuiet);
  const Result result = machine.race({{.call_ns = 120e3}, {.call_ns = 100e3}, {.call_ns = 130e3}});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.end, End::one_left);
  EXPECT_EQ(result.rounds, 8U);
  EXPECT_EQ(result.samples, 24U);
  const Standing& faster = result.standings[1];
  EXPECT_EQ(faster.verdict, Verdict::faster);
  EXPECT_NEAR(faster.log_ratio, std::log(100.0 / 120.0), 0.002);
  EXPECT_LE(faster.low, faster.log_ratio);
  EXPECT_GE(faster.high, faster.log_ratio);
  EXPECT_LT(faster.high, 0);
  EXPECT_EQ(faster.rounds, 8U);
  EXPECT_EQ(result.standings[2].verdict, Verdict::slower);
  EXPECT_EQ(result.standings[2].exit, Exit::slower);
  EXPECT_EQ(result.standings[0].verdict, Verdict::same);
  EXPECT_EQ(result.standings[0].exit, Exit::slower);
}

TEST(RaceRules, TiesEndAsSameAndTheIncumbentStays) {
  SimulatedMachine machine(2, kQuiet);
  // Faster by less than the margin.
  const Result result =
      machine.race({{.call_ns = 100e3}, {.call_ns = 99.7e3}, {.call_ns = 100.2e3}});
  EXPECT_EQ(result.winner, 0U);
  EXPECT_EQ(result.end, End::tie);
  EXPECT_EQ(result.standings[1].verdict, Verdict::same);
}

TEST(RaceRules, OfTwoFasterTiesTheOneThatIsPreferredWins) {
  SimulatedMachine machine(3, {.sample_noise = 0.002, .drift = 0, .outliers = 0});
  const Result result =
      machine.race({{.call_ns = 120e3}, {.call_ns = 100.1e3}, {.call_ns = 100e3}});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::faster);
  EXPECT_EQ(result.standings[2].verdict, Verdict::faster);
}

TEST(RaceRules, ASampleTakesAtLeast20Microseconds) {
  SimulatedMachine machine(4, kQuiet);
  const Result result = machine.race({{.call_ns = 1e3}, {.call_ns = 50}, {.call_ns = 30e3}});
  EXPECT_GE(result.standings[0].calls, 20U);
  EXPECT_LE(result.standings[0].calls, 30U);
  EXPECT_GE(result.standings[1].calls, 400U);
  EXPECT_LE(result.standings[1].calls, 600U);
  EXPECT_EQ(result.standings[2].calls, 1U);
  EXPECT_EQ(result.winner, 1U);
}

TEST(RaceRules, TheFirstCallDoesNotDecideTheCallsOfASample) {
  SimulatedMachine machine(5, kQuiet);
  const Result result = machine.race(
      {{.call_ns = 1e3, .first_call_ns = 5e6}, {.call_ns = 2e3, .first_call_ns = 1e6}});
  EXPECT_GE(result.standings[0].calls, 20U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::slower);
}

TEST(RaceRules, ACandidateWithAHopelessFirstCallIsNotCalledAgain) {
  SimulatedMachine machine(6, kQuiet);
  const Result result = machine.race({{.call_ns = 20e6}, {.call_ns = 19e6}, {.call_ns = 70e6}},
                                     {.most_time_ns = 60'000'000'000});
  EXPECT_EQ(result.standings[2].exit, Exit::hopeless);
  EXPECT_EQ(result.standings[2].verdict, Verdict::slower);
  EXPECT_EQ(result.standings[2].rounds, 0U);
  EXPECT_NEAR(result.standings[2].log_ratio, std::log(3.5), 0.1);
  EXPECT_EQ(machine.calls_made, 3U + 2U + result.samples);
  EXPECT_EQ(result.winner, 1U);
}

TEST(RaceRules, SlowByOneMeasureOnlyIsNotHopeless) {
  SimulatedMachine machine(7, kQuiet);
  // More than 50 ms but not 3 times the best; 4 times the best but not 50 ms.
  const Options long_enough{.most_time_ns = 600'000'000'000};
  EXPECT_EQ(machine.race({{.call_ns = 30e6}, {.call_ns = 60e6}}, long_enough).standings[1].exit,
            Exit::slower);
  EXPECT_EQ(machine.race({{.call_ns = 10e6}, {.call_ns = 40e6}}, long_enough).standings[1].exit,
            Exit::slower);
}

TEST(RaceRules, AHopelessIncumbentIsComparedWithTheOthers) {
  SimulatedMachine machine(8, kQuiet);
  const Result result =
      machine.race({{.call_ns = 100e6}, {.call_ns = 10e6}}, {.most_time_ns = 10'000'000'000});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::faster);
  EXPECT_EQ(result.rounds, 8U);
}

TEST(RaceRules, RunningOutOfTimeIsUnclear) {
  SimulatedMachine machine(9, kQuiet);
  // Time for the first calls, the second ones and five rounds of two.
  const Result result =
      machine.race({{.call_ns = 10e6}, {.call_ns = 5e6}}, {.most_time_ns = 105'000'000});
  EXPECT_EQ(result.end, End::time);
  EXPECT_EQ(result.winner, 0U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
  EXPECT_GE(result.rounds, 4U);
  EXPECT_LT(result.took_ns, 120'000'000U);  // ends after the sample that exceeded the time
}

TEST(RaceRules, ARoundEndsWithTheSampleThatExceedsTheTime) {
  SimulatedMachine machine(9, {.sample_noise = 0, .drift = 0, .outliers = 0});
  // 30 ms for the first and second calls, 60 ms for four rounds.
  const Result result =
      machine.race({{.call_ns = 10e6}, {.call_ns = 5e6}}, {.most_time_ns = 92'000'000});
  EXPECT_EQ(result.rounds, 4U);
  EXPECT_EQ(result.samples, 9U);
}

TEST(RaceRules, EachCandidateIsFirstInAboutAsManyRounds) {
  SimulatedMachine machine(19, {.sample_noise = 0.3});
  std::mt19937_64 random(19);
  std::vector<int> first(3);
  size_t samples = 0;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < 3; ++i) {
    candidates.push_back({[&, i, kernel = machine.candidate({})](uint64_t calls) {
      // Six runs come before the first round.
      if (samples++ % 3 == 0 && samples > 6) ++first[i];
      return kernel.run(calls);
    }});
  }
  const Result result = race(candidates, {.most_rounds = 300}, {machine, machine, random});
  ASSERT_EQ(result.samples, 900U);
  for (const int count : first) EXPECT_NEAR(count, 100, 30);
}

TEST(RaceRules, RunningOutOfTimeBeforeTheFirstRoundIsUnclear) {
  for (const uint64_t most_time_ns : {5'000'000U, 12'000'000U, 22'000'000U}) {
    SimulatedMachine machine(10, kQuiet);
    const Result result =
        machine.race({{.call_ns = 10e6}, {.call_ns = 5e6}}, {.most_time_ns = most_time_ns});
    EXPECT_EQ(result.end, End::time);
    EXPECT_EQ(result.rounds, 0U);
    EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
  }
}

TEST(RaceRules, RunningOutOfRoundsIsUnclear) {
  SimulatedMachine machine(11, {.sample_noise = 0.2});
  const Result result = machine.race({{.call_ns = 100e3}, {.call_ns = 101e3}}, {.most_rounds = 16});
  EXPECT_EQ(result.end, End::rounds);
  EXPECT_EQ(result.rounds, 16U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
  EXPECT_EQ(result.winner, 0U);
}

TEST(RaceRules, DroppedRoundsAreCountedByCauseAndNotByTheBudget) {
  SimulatedMachine machine(12, kQuiet);
  machine.scripted = {Noise::steal, Noise::none,  Noise::context_switch,
                      Noise::ruler, Noise::ruler, Noise::none};
  const Result result = machine.race({{.call_ns = 100e3}, {.call_ns = 90e3}}, {.most_rounds = 8});
  EXPECT_EQ(result.rounds, 8U);
  EXPECT_EQ(result.dropped(Noise::steal), 4U);
  EXPECT_EQ(result.dropped(Noise::context_switch), 4U);
  EXPECT_EQ(result.dropped(Noise::ruler), 8U);
  EXPECT_EQ(result.dropped(Noise::none), 0U);
  EXPECT_EQ(machine.rounds, 24U);
  EXPECT_EQ(result.samples, 48U);
  EXPECT_EQ(result.winner, 1U);
}

TEST(RaceRules, AMachineThatIsNeverQuietIsUnclear) {
  SimulatedMachine machine(13, kQuiet);
  machine.scripted = {Noise::context_switch};
  const Result result =
      machine.race({{.call_ns = 100e3}, {.call_ns = 50e3}}, {.most_time_ns = 50'000'000});
  EXPECT_EQ(result.end, End::time);
  EXPECT_EQ(result.rounds, 0U);
  EXPECT_GT(result.dropped(Noise::context_switch), 100U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
}

TEST(RaceRules, ASlowCandidateLeavesIfEveryRoundWithItIsDropped) {
  SimulatedMachine machine(20, {.sample_noise = 0.002, .outliers = 0, .slice_ns = 4e6});
  const Result result =
      machine.race({{.call_ns = 100e3}, {.call_ns = 90e3}, {.call_ns = 250e3}, {.call_ns = 8e6}});
  EXPECT_EQ(result.standings[3].exit, Exit::hopeless);
  EXPECT_EQ(result.standings[3].verdict, Verdict::slower);
  EXPECT_NEAR(result.standings[3].log_ratio, std::log(80), 0.1);
  EXPECT_EQ(result.standings[3].rounds, 0U);
  EXPECT_EQ(result.standings[1].verdict, Verdict::faster);
  EXPECT_EQ(result.standings[2].exit, Exit::slower);  // not three times as slow
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.most_noise(), Noise::context_switch);
  EXPECT_LT(result.dropped(), 16U);
}

TEST(RaceRules, ASlowCandidateStaysWhileRoundsAreAccepted) {
  SimulatedMachine machine(21, kQuiet);
  const Result result = machine.race({{.call_ns = 100e3}, {.call_ns = 1e6}});
  EXPECT_EQ(result.standings[1].exit, Exit::slower);
  EXPECT_EQ(result.standings[1].rounds, 8U);
  EXPECT_EQ(result.most_noise(), Noise::none);
}

TEST(RaceRules, ACandidateThatFailsLeaves) {
  for (const uint64_t run : {1U, 2U, 5U}) {
    SimulatedMachine machine(14, kQuiet);
    const Result result =
        machine.race({{.call_ns = 100e3}, {.call_ns = 50e3, .fails_at = run}, {.call_ns = 90e3}});
    EXPECT_EQ(result.standings[1].exit, Exit::failed);
    EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
    EXPECT_EQ(result.winner, 2U);
  }
}

TEST(RaceRules, WithoutTheIncumbentNothingIsClaimed) {
  SimulatedMachine machine(15, kQuiet);
  const Result result = machine.race({{.call_ns = 100e3, .fails_at = 4}, {.call_ns = 50e3}});
  EXPECT_EQ(result.end, End::incumbent);
  EXPECT_EQ(result.standings[1].verdict, Verdict::unclear);
  EXPECT_EQ(result.winner, 0U);
}

TEST(RaceRules, ASeedDeterminesTheResult) {
  const auto run = [](uint64_t seed) {
    SimulatedMachine machine(seed, {.neighbour_away_ns = 2e6, .neighbour_here_ns = 1e6});
    return machine.race({{.call_ns = 101e3}, {.call_ns = 100e3}, {.call_ns = 103e3}});
  };
  const Result first = run(16);
  const Result again = run(16);
  EXPECT_EQ(first.winner, again.winner);
  EXPECT_EQ(first.took_ns, again.took_ns);
  EXPECT_EQ(first.dropped_rounds, again.dropped_rounds);
  EXPECT_EQ(first.standings[2].log_ratio, again.standings[2].log_ratio);
  EXPECT_NE(first.took_ns, run(17).took_ns);
}

TEST(RaceRules, SixteenCandidatesAreTheMost) {
  SimulatedMachine machine(18, kQuiet);
  std::vector<SimulatedKernel> kernels;
  for (int i = 0; i < 16; ++i) kernels.push_back({.call_ns = 100e3 * (1 + 0.05 * ((i + 5) % 16))});
  EXPECT_EQ(machine.race(kernels).winner, 11U);
  kernels.emplace_back();
  EXPECT_THROW(machine.race(kernels), std::invalid_argument);
  kernels.resize(1);
  EXPECT_THROW(machine.race(kernels), std::invalid_argument);
}

TEST(RaceRules, VerdictsAndCausesHaveNames) {
  EXPECT_EQ(verdict_name(Verdict::faster), "faster");
  EXPECT_EQ(verdict_name(Verdict::slower), "slower");
  EXPECT_EQ(verdict_name(Verdict::same), "same");
  EXPECT_EQ(verdict_name(Verdict::unclear), "unclear");
  EXPECT_EQ(noise_name(Noise::none), "none");
  EXPECT_EQ(noise_name(Noise::steal), "steal");
  EXPECT_EQ(noise_name(Noise::context_switch), "context_switch");
  EXPECT_EQ(noise_name(Noise::ruler), "ruler");
}

}  // namespace
}  // namespace opmux::tune::race
