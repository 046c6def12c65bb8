#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/system/clock.hpp"
#include "tune/race/noise.hpp"
#include "tune/verdict.hpp"

namespace opmux::tune::race {

/// Something to be timed. run(calls) makes that many calls and returns false if one failed.
struct Candidate {
  std::function<bool(uint64_t calls)> run;
};

struct Options {
  uint64_t least_sample_ns = 20'000;  ///< a sample is as many calls as take this long
  uint32_t first_look = 8;            ///< accepted rounds before the first look at the ratios
  uint32_t look_every = 4;            ///< accepted rounds between two looks
  uint32_t most_rounds = 200;         ///< accepted rounds
  uint64_t most_time_ns = 3'000'000'000;
  double margin = kTieMargin;  ///< log ratios within this are a tie
  /// A candidate whose first call takes longer than `hopeless_ns` and `hopeless_factor` times the
  /// fastest first call is not called again.
  double hopeless_factor = 3;
  uint64_t hopeless_ns = 50'000'000;
  /// Dropped rounds before the first look, after which candidates leave that took longer in all of
  /// them, by `hopeless_factor`, than another one in any. Long rounds are the most disturbed.
  uint32_t most_dropped = 8;
};

/// The clock, the noise and the random numbers of a race.
struct Environment {
  const base::Clock& clock;
  NoiseObserver& noise;
  std::function<uint64_t()> random;  ///< 64 random bits, for the order within a round
};

/// Why a candidate was no longer run before the race ended.
enum class Exit : uint8_t {
  none,
  slower,    ///< surely slower than the candidate that leads
  hopeless,  ///< its first call, or its calls in dropped rounds, took too long
  failed,    ///< run() returned false
};

/// The result of one candidate. All ratios are log(its time / time of the incumbent).
struct Standing {
  Verdict verdict = Verdict::unclear;
  Exit exit = Exit::none;
  double log_ratio = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  uint32_t rounds = 0;  ///< accepted rounds in which it ran together with the incumbent
  uint64_t calls = 0;   ///< calls of one sample
};

enum class End : uint8_t {
  one_left,   ///< all other candidates are surely slower
  tie,        ///< the candidates that are left are surely within the margin
  rounds,     ///< `most_rounds` were accepted
  time,       ///< `most_time_ns` passed
  incumbent,  ///< the incumbent failed, so that there is nothing to compare with
};

struct Result {
  std::vector<Standing> standings;  ///< in the order of the candidates
  /// The incumbent, unless a candidate is `faster`; of several, the fastest, or an earlier one
  /// within the margin of it.
  size_t winner = 0;
  End end = End::time;
  uint32_t rounds = 0;                             ///< accepted
  std::array<uint32_t, kNoises> dropped_rounds{};  ///< by cause
  uint64_t samples = 0;                            ///< of all rounds, also dropped ones
  uint64_t took_ns = 0;

  uint32_t dropped(Noise cause) const { return dropped_rounds[static_cast<size_t>(cause)]; }
  uint32_t dropped() const {
    return std::accumulate(dropped_rounds.begin(), dropped_rounds.end(), uint32_t{0});
  }
  /// The cause of most of them; `none` if there are none.
  Noise most_noise() const {
    if (dropped() == 0) return Noise::none;
    const auto most = std::max_element(dropped_rounds.begin(), dropped_rounds.end());
    return static_cast<Noise>(most - dropped_rounds.begin());
  }
};

/// Finds the fastest of 2 to 16 candidates. The first is the incumbent, the one to be used if the
/// race is unclear; the others are in order of preference. Each round runs every candidate that is
/// left once, in random order, so that both times of a pair come from the same moment. The calling
/// thread makes all calls. It throws std::invalid_argument for fewer or more candidates, and what
/// a candidate throws.
Result race(const std::vector<Candidate>& candidates, const Options& options,
            const Environment& environment);

}  // namespace opmux::tune::race
