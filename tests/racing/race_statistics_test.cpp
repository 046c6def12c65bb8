// How often races are wrong and what they cost, over thousands of simulated ones. The seeds are
// fixed. OPMUX_RACE_RUNS multiplies the number of races.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <span>

#include "simulated_machine.hpp"

namespace opmux::tune::race {
namespace {

int runs(int count) {
  const char* factor = std::getenv("OPMUX_RACE_RUNS");
  return factor ? count * std::atoi(factor) : count;
}

/// Verdicts on all candidates but the incumbent, over many races.
struct Tally {
  int races = 0;
  int faster = 0;    ///< races in which at least one candidate was `faster`
  int all_same = 0;  ///< races in which all were `same`
  double samples = 0;

  double faster_per_1000() const { return 1000.0 * faster / races; }
};

Tally tally(int races, const std::vector<SimulatedKernel>& kernels, const Disturbance& disturbance,
            const Options& options = {}) {
  Tally sum;
  for (int i = 0; i < races; ++i) {
    SimulatedMachine machine(static_cast<uint64_t>(i) + 1, disturbance);
    const Result result = machine.race(kernels, options);
    const auto challengers = std::span(result.standings).subspan(1);
    const auto count = [&](Verdict verdict) {
      return std::count_if(challengers.begin(), challengers.end(),
                           [&](const Standing& standing) { return standing.verdict == verdict; });
    };
    ++sum.races;
    sum.faster += count(Verdict::faster) > 0;
    sum.all_same += count(Verdict::same) == std::ssize(challengers);
    sum.samples += static_cast<double>(result.samples) / races;
  }
  std::cout << sum.races << " races: faster " << sum.faster << ", all same " << sum.all_same << ", "
            << sum.samples << " samples\n";
  return sum;
}

struct Regret {
  double mean = 0;
  double p99 = 0;
  double worst = 0;
  double samples = 0;
};

/// Races of candidates of which one is the fastest and the others are slower by 1 to 5 %. Regret
/// is how much slower the winner is than the fastest.
Regret regret(int races, size_t candidates, const Options& options) {
  std::vector<double> regrets;
  Regret sum;
  for (int i = 0; i < races; ++i) {
    SimulatedMachine machine(static_cast<uint64_t>(i) + 1);
    std::vector<SimulatedKernel> kernels(candidates);
    for (SimulatedKernel& kernel : kernels) kernel.call_ns = 101e3 + 4e3 * machine.uniform();
    kernels[static_cast<size_t>(machine.uniform() * static_cast<double>(candidates))].call_ns =
        100e3;
    const Result result = machine.race(kernels, options);
    regrets.push_back(kernels[result.winner].call_ns / 100e3 - 1);
    sum.mean += regrets.back() / races;
    sum.samples += static_cast<double>(result.samples) / races;
  }
  std::sort(regrets.begin(), regrets.end());
  sum.p99 = regrets[regrets.size() * 99 / 100];
  sum.worst = regrets.back();
  std::cout << candidates << " candidates: regret mean " << 100 * sum.mean << " %, p99 "
            << 100 * sum.p99 << " %, worst " << 100 * sum.worst << " %, " << sum.samples
            << " samples\n";
  return sum;
}

TEST(RaceStatistics, RegretIsBelowOneInAThousandWithin60Samples) {
  const Options quick{.most_rounds = 60};
  for (const size_t candidates : {2U, 3U}) {
    const Regret result = regret(runs(2000), candidates, quick);
    EXPECT_LE(result.mean, 0.001);
    EXPECT_LE(result.samples, 60);
  }
}

TEST(RaceStatistics, RegretOfManyCandidates) {
  for (const size_t candidates : {4U, 8U}) {
    const Regret result = regret(runs(500), candidates, {});
    EXPECT_LE(result.mean, 0.001);
    EXPECT_LE(result.samples, 25.0 * static_cast<double>(candidates));
  }
}

TEST(RaceStatistics, EqualCandidatesAreFasterInLessThan1Of1000) {
  for (const uint32_t rounds : {60U, 200U})
    EXPECT_LE(tally(runs(6000), std::vector<SimulatedKernel>(2), {}, {.most_rounds = rounds})
                  .faster_per_1000(),
              1);
  EXPECT_LE(tally(runs(1000), std::vector<SimulatedKernel>(4), {}).faster_per_1000(), 1);
}

TEST(RaceStatistics, TiesEndAsSame) {
  EXPECT_GE(tally(runs(1000), std::vector<SimulatedKernel>(2), {}).all_same, runs(1000) * 9 / 10);
  const Disturbance half{.sample_noise = 0.0075};
  EXPECT_GE(tally(runs(500), std::vector<SimulatedKernel>(2), half).all_same, runs(500) * 95 / 100);
  EXPECT_GE(tally(runs(500), {{.call_ns = 100e3}, {.call_ns = 99.8e3}}, half).all_same,
            runs(500) * 9 / 10);
}

TEST(RaceStatistics, EqualCandidatesOnAProcessorWithTwoSpeeds) {
  const Disturbance two_speeds{.sample_noise = 0.001, .two_speeds = 0.1};
  EXPECT_LE(tally(runs(4000), std::vector<SimulatedKernel>(2), two_speeds, {.most_rounds = 60})
                .faster_per_1000(),
            1);
}

/// A neighbour that loads both cores half of the time.
Disturbance neighbour(double seen) {
  return {.neighbour_away_ns = 5e6, .neighbour_here_ns = 5e6, .neighbour_seen = seen};
}

TEST(RaceStatistics, EqualCandidatesBesideANeighbour) {
  for (const double seen : {0.9, 0.0}) {
    const Tally result =
        tally(runs(3000), std::vector<SimulatedKernel>(2), neighbour(seen), {.most_rounds = 60});
    EXPECT_LE(result.faster_per_1000(), 1) << seen;
  }
}

TEST(RaceStatistics, ANeighbourThatSlowsTheIncumbentMoreDoesNotMakeTheOtherFaster) {
  // The incumbent has two threads and suffers from a load on both cores; the other has one and is
  // slower by 3 % on a quiet machine.
  const std::vector<SimulatedKernel> kernels{{.call_ns = 100e3, .neighbour_factor = 2},
                                             {.call_ns = 103e3, .neighbour_factor = 1.2}};
  EXPECT_LE(tally(runs(3000), kernels, neighbour(0.9)).faster_per_1000(), 1);
}

}  // namespace
}  // namespace opmux::tune::race
