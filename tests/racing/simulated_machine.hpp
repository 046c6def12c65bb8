#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tune/race/race.hpp"

namespace opmux::tune::race {

/// The disturbances of a simulated machine. Without a change it is the model by which the
/// rules of docs/dev/decisions/040-racing.md were compared.
struct Disturbance {
  double sample_noise = 0.015;    ///< standard deviation of the logarithm of a sample
  double drift = 0.02;            ///< the speed of the machine swings by this factor
  double drift_period_ns = 20e6;  ///< one swing
  double outliers = 0.03;         ///< part of the samples that take up to twice as long
  double two_speeds = 0;          ///< half of the samples are longer by this factor
  /// A neighbour comes and goes; the times are means of exponential distributions. 0: it never
  /// comes.
  double neighbour_away_ns = 0;
  double neighbour_here_ns = 0;
  double neighbour_seen = 0.9;  ///< part of the rounds with the neighbour that the observer notices
  double slice_ns = 0;          ///< the kernel runs another thread each time this has passed
};

/// How long one call takes without disturbance, and what a neighbour does to it.
struct SimulatedKernel {
  double call_ns = 100'000;
  double first_call_ns = 0;       ///< added to the first call
  double neighbour_factor = 1.5;  ///< mean slowdown while the neighbour is here
  uint64_t fails_at = 0;          ///< the run that fails, counted from 1; 0: none
};

/// A clock that only simulated kernels move, and an observer of their disturbances. A seed
/// determines everything that happens.
class SimulatedMachine final : public base::Clock, public NoiseObserver {
 public:
  explicit SimulatedMachine(uint64_t seed, const Disturbance& disturbance = {})
      : disturbance_(disturbance), random_(seed), order_(seed * 2 + 1) {
    phase_ = 2 * kPi * uniform();
    if (disturbance.neighbour_away_ns > 0) {
      const double all = disturbance.neighbour_away_ns + disturbance.neighbour_here_ns;
      here_ = uniform() * all < disturbance.neighbour_here_ns;
      next_change_ns_ = stay();
    }
  }

  uint64_t now_ns() const override { return static_cast<uint64_t>(now_); }

  void begin_round() override {
    round_start_ = now_;
    here_in_round_ = here_;
    ++rounds;
  }
  Noise end_round() override {
    if (!scripted.empty()) return scripted[(rounds - 1) % scripted.size()];
    const double slice = disturbance_.slice_ns;
    if (slice > 0 && std::floor(now_ / slice) > std::floor(round_start_ / slice))
      return Noise::context_switch;
    if (!here_in_round_ || uniform() >= disturbance_.neighbour_seen) return Noise::none;
    return uniform() < 0.5 ? Noise::context_switch : Noise::ruler;
  }

  Candidate candidate(const SimulatedKernel& kernel) {
    return {[this, kernel, runs = uint64_t{0}](uint64_t calls) mutable {
      calls_made += calls;
      if (++runs == kernel.fails_at) return false;
      if (runs == 1) pass(kernel.first_call_ns);
      pass(disturbed(kernel.call_ns * static_cast<double>(calls), kernel));
      return true;
    }};
  }

  Result race(const std::vector<SimulatedKernel>& kernels, const Options& options = {}) {
    std::vector<Candidate> candidates;
    for (const SimulatedKernel& kernel : kernels) candidates.push_back(candidate(kernel));
    return race::race(candidates, options, {*this, *this, [this] { return order_(); }});
  }

  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::vector<Noise> scripted;  ///< results of end_round, in turn, in place of the neighbour
  uint64_t rounds = 0;          ///< also dropped ones
  uint64_t calls_made = 0;

 private:
  static constexpr double kPi = 3.14159265358979323846;

  double disturbed(double time_ns, const SimulatedKernel& kernel) {
    double log_factor =
        disturbance_.sample_noise * normal_(random_) +
        disturbance_.drift * std::sin(phase_ + 2 * kPi * now_ / disturbance_.drift_period_ns);
    if (uniform() < disturbance_.outliers) log_factor += std::log1p(uniform());
    if (disturbance_.two_speeds > 0 && uniform() < 0.5) log_factor += disturbance_.two_speeds;
    if (here_) log_factor += std::log(kernel.neighbour_factor) * 2 * uniform();
    return time_ns * std::exp(log_factor);
  }

  void pass(double time_ns) {
    now_ += time_ns;
    while (next_change_ns_ > 0 && now_ >= next_change_ns_) {
      here_ = !here_;
      here_in_round_ = true;
      next_change_ns_ += stay();
    }
  }

  double stay() {
    const double mean = here_ ? disturbance_.neighbour_here_ns : disturbance_.neighbour_away_ns;
    return -mean * std::log1p(-uniform());
  }

  Disturbance disturbance_;
  std::mt19937_64 random_;
  std::mt19937_64 order_;
  std::normal_distribution<double> normal_;
  double now_ = 0;
  double round_start_ = 0;
  double phase_ = 0;
  bool here_ = false;
  bool here_in_round_ = false;
  double next_change_ns_ = 0;
};

}  // namespace opmux::tune::race
