// The observers of this machine, and a race of two real kernels on the real clock.
#include "tune/race/system_noise.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tune/race/race.hpp"

namespace opmux::tune::race {
namespace {

TEST(SystemNoise, StealIsTheEighthFieldOfEachProcessor) {
  const std::vector<uint64_t> steal = parse_steal(
      "cpu  10 0 20 300 4 0 1 77 0 0\n"
      "cpu0 5 0 10 150 2 0 1 33 0 0\n"
      "cpu2 5 0 10 150 2 0 0 44 0 0\n"
      "intr 12345 0 9\n"
      "cpu3 1 1 1 1 1 1 1 99 0 0\n");
  EXPECT_EQ(steal, (std::vector<uint64_t>{33, 0, 44}));
}

TEST(SystemNoise, UnreadableLinesOfProcStatAreIgnored) {
  EXPECT_TRUE(parse_steal("").empty());
  EXPECT_TRUE(parse_steal("intr 1\n").empty());
  EXPECT_TRUE(parse_steal("cpu0 1 2 3\n").empty());
  EXPECT_TRUE(parse_steal("cpux 1 2 3 4 5 6 7 8\n").empty());
  EXPECT_TRUE(parse_steal("cpu99999999999 1 2 3 4 5 6 7 8\n").empty());
  EXPECT_TRUE(parse_steal("cpu0 1 2 3 4 5 6 7 x8\n").empty());
  EXPECT_TRUE(parse_steal("cpu0 1 2 3 4 5 6 7 8").empty());  // cut off: 8 may be the begin of 80
}

TEST(SystemNoise, TheCounterReadsThisMachine) {
  StealCounter counter;
  const std::vector<uint64_t> first = counter.read();
  const std::vector<uint64_t> second = counter.read();
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_LE(first[i], second[i]);
  EXPECT_LE(involuntary_switches(), involuntary_switches());
}

TEST(SystemNoise, TheRulerRefusesADurationThatDiffersByMoreThan3Percent) {
  Ruler ruler;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ruler.fits(1000));
  EXPECT_TRUE(ruler.fits(1029));
  EXPECT_FALSE(ruler.fits(1031));
  EXPECT_TRUE(ruler.fits(971));
  EXPECT_FALSE(ruler.fits(969));
}

TEST(SystemNoise, TheRulerAcceptsALastingChangeOfSpeed) {
  Ruler ruler;
  for (int i = 0; i < 40; ++i) ruler.fits(1000);
  int refused = 0;
  while (!ruler.fits(1100)) ++refused;
  EXPECT_EQ(refused, 8);
  EXPECT_FALSE(ruler.fits(1000));
}

/// A clock that advances by the next step at each reading.
class SteppingClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return now += step; }
  mutable uint64_t now = 0;
  uint64_t step = 1000;
};

TEST(SystemNoise, ARoundWithASlowRulerAtEitherEndIsDropped) {
  SteppingClock clock;
  SystemNoise noise(clock, 1);
  const auto round = [&](uint64_t at_begin, uint64_t at_end) {
    clock.step = at_begin;
    noise.begin_round();
    clock.step = at_end;
    return noise.end_round();
  };
  // Steal or a switch may be reported instead, if the test is disturbed at that moment.
  EXPECT_NE(round(1000, 1000), Noise::ruler);
  EXPECT_NE(round(1200, 1000), Noise::none);
  EXPECT_NE(round(1000, 1200), Noise::none);
  EXPECT_NE(round(1000, 1000), Noise::ruler);
}

bool run_steps(uint64_t calls, int steps, uint64_t& value) {
  for (uint64_t call = 0; call < calls; ++call) {
    for (int step = 0; step < steps; ++step) value = value * 6'364'136'223'846'793'005U + 1;
  }
  return true;
}

TEST(SystemNoise, OfTwoRealKernelsTheShorterWins) {
  const base::SteadyClock clock;
  for (const uint32_t threads : {1U, 2U}) {
    SystemNoise noise(clock, threads);
    std::mt19937_64 random(7);
    uint64_t value = 1;
    const std::vector<Candidate> candidates{
        {[&](uint64_t calls) { return run_steps(calls, 4000, value); }},
        {[&](uint64_t calls) { return run_steps(calls, 2000, value); }},
        {[&](uint64_t calls) { return run_steps(calls, 8000, value); }}};
    const Result result = race(candidates, {.most_time_ns = 1'000'000'000}, {clock, noise, random});
    // A machine that is busy for a second drops too many rounds for a verdict.
    const Verdict shorter = result.standings[1].verdict;
    EXPECT_TRUE(shorter == Verdict::faster || shorter == Verdict::unclear) << verdict_name(shorter);
    const Verdict longer = result.standings[2].verdict;
    EXPECT_TRUE(longer == Verdict::slower || longer == Verdict::unclear) << verdict_name(longer);
    EXPECT_EQ(result.winner, shorter == Verdict::faster ? 1U : 0U);
    EXPECT_NE(value, 1U);
    for (const Noise cause : {Noise::steal, Noise::context_switch, Noise::ruler})
      RecordProperty(std::string(noise_name(cause)), static_cast<int>(result.dropped(cause)));
  }
}

}  // namespace
}  // namespace opmux::tune::race
