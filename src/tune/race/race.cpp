#include "tune/race/race.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "tune/race/paired_ratios.hpp"

namespace opmux::tune::race {
namespace {

constexpr size_t kIncumbent = 0;
constexpr size_t kMostCandidates = 16;
/// Standard errors by which a candidate must be slower than a leader that is not the incumbent.
/// None of the two is in use, so that less evidence suffices.
constexpr double kChallengerErrors = 2;
/// Bounds the search for the calls of a sample, if the clock does not advance.
constexpr uint64_t kMostCalls = uint64_t{1} << 24;

Verdict judge(const Interval& interval, double margin) {
  return verdict_of(interval.center, interval.low, interval.high, margin);
}

class Race {
 public:
  Race(const std::vector<Candidate>& candidates, const Options& options,
       const Environment& environment)
      : candidates_(candidates),
        options_(options),
        environment_(environment),
        start_ns_(environment.clock.now_ns()),
        ratios_(candidates.size()),
        log_times_(candidates.size()),
        shortest_(candidates.size(), std::numeric_limits<double>::infinity()),
        longest_(candidates.size(), -std::numeric_limits<double>::infinity()) {
    result_.standings.resize(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) live_.push_back(i);
  }

  Result run() {
    result_.end = run_rounds();
    result_.rounds = static_cast<uint32_t>(ratios_.rounds());
    if (result_.end == End::incumbent) {
      for (Standing& standing : result_.standings) standing.verdict = Verdict::unclear;
    } else {
      Standing& incumbent = result_.standings[kIncumbent];
      incumbent.verdict = Verdict::same;
      incumbent.low = incumbent.high = 0;
      incumbent.rounds = static_cast<uint32_t>(ratios_.ratio(kIncumbent, kIncumbent).rounds);
    }
    result_.winner = winner();
    result_.took_ns = environment_.clock.now_ns() - start_ns_;
    return std::move(result_);
  }

 private:
  End run_rounds();
  /// Runs every candidate once and leaves out the hopeless ones. False if the time is over.
  bool first_calls();
  /// Leaves out the hopeless ones by their times in all rounds, also dropped ones.
  void leave_hopeless();
  /// Finds the calls of a sample for each live candidate. False if the time is over.
  bool calibrate();
  enum class Round : uint8_t { accepted, dropped, failed, out_of_time };
  Round run_round();
  /// The duration of these calls. Nullopt if one failed.
  std::optional<uint64_t> time(size_t candidate, uint64_t calls);
  /// Brings the verdicts up to date and removes candidates. The reason to end the race, if there
  /// is one.
  std::optional<End> look();
  size_t leader(const std::vector<size_t>& among) const;
  void drop_slower();
  size_t winner() const;

  bool is_live(size_t candidate) const {
    return std::find(live_.begin(), live_.end(), candidate) != live_.end();
  }
  bool out_of_time() const {
    return environment_.clock.now_ns() - start_ns_ >= options_.most_time_ns;
  }
  void leave(size_t candidate, Exit exit) {
    result_.standings[candidate].exit = exit;
    std::erase(live_, candidate);
  }
  bool all_live(auto&& condition) const {
    return std::all_of(live_.begin(), live_.end(), condition);
  }

  const std::vector<Candidate>& candidates_;
  const Options& options_;
  const Environment& environment_;
  const uint64_t start_ns_;
  std::vector<size_t> live_;  // in order of preference
  std::vector<size_t> order_;
  PairedRatios ratios_;
  std::vector<double> log_times_;  // of the current round
  // The extremes of all rounds. Noise makes a call longer, but never shorter.
  std::vector<double> shortest_, longest_;
  Result result_;
};

std::optional<uint64_t> Race::time(size_t candidate, uint64_t calls) {
  const uint64_t before = environment_.clock.now_ns();
  if (!candidates_[candidate].run(calls)) {
    leave(candidate, Exit::failed);
    result_.standings[candidate].verdict = Verdict::unclear;
    return std::nullopt;
  }
  return std::max<uint64_t>(environment_.clock.now_ns() - before, 1);
}

bool Race::first_calls() {
  std::vector<uint64_t> took(candidates_.size());
  uint64_t best = std::numeric_limits<uint64_t>::max();
  for (const size_t candidate : std::vector<size_t>(live_)) {
    const std::optional<uint64_t> first = time(candidate, 1);
    if (!first) continue;
    result_.standings[candidate].calls = 1;
    took[candidate] = *first;
    best = std::min(best, *first);
    if (out_of_time()) return false;
  }
  for (const size_t candidate : std::vector<size_t>(live_)) {
    // The incumbent stays, because the others are compared with it.
    const bool hopeless =
        took[candidate] > options_.hopeless_ns &&
        static_cast<double>(took[candidate]) > options_.hopeless_factor * static_cast<double>(best);
    if (!hopeless || candidate == kIncumbent) continue;
    leave(candidate, Exit::hopeless);
    Standing& standing = result_.standings[candidate];
    standing.log_ratio = std::log(static_cast<double>(took[candidate]) /
                                  static_cast<double>(std::max<uint64_t>(took[kIncumbent], 1)));
    if (standing.log_ratio > options_.margin) standing.verdict = Verdict::slower;
  }
  return true;
}

bool Race::calibrate() {
  for (const size_t candidate : std::vector<size_t>(live_)) {
    uint64_t calls = 1;
    while (calls < kMostCalls) {
      if (out_of_time()) return false;
      const std::optional<uint64_t> took = time(candidate, calls);
      if (!took) break;
      if (*took >= options_.least_sample_ns) break;
      // A tenth more than needed, so that the next attempt suffices.
      const uint64_t needed = calls * options_.least_sample_ns / *took;
      calls = std::clamp(needed + needed / 10 + 1, calls + 1, 2 * kMostCalls);
    }
    result_.standings[candidate].calls = calls;
  }
  return true;
}

Race::Round Race::run_round() {
  order_ = live_;
  for (size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[environment_.random() % i]);
  std::fill(log_times_.begin(), log_times_.end(), std::numeric_limits<double>::quiet_NaN());
  environment_.noise.begin_round();
  for (const size_t candidate : order_) {
    const uint64_t calls = result_.standings[candidate].calls;
    const std::optional<uint64_t> took = time(candidate, calls);
    ++result_.samples;
    if (!took) return Round::failed;
    log_times_[candidate] = std::log(static_cast<double>(*took) / static_cast<double>(calls));
    if (out_of_time()) return Round::out_of_time;
  }
  for (const size_t candidate : order_) {
    shortest_[candidate] = std::min(shortest_[candidate], log_times_[candidate]);
    longest_[candidate] = std::max(longest_[candidate], log_times_[candidate]);
  }
  const Noise noise = environment_.noise.end_round();
  if (noise != Noise::none) {
    ++result_.dropped_rounds[static_cast<size_t>(noise)];
    return Round::dropped;
  }
  ratios_.add_round(log_times_);
  return Round::accepted;
}

void Race::leave_hopeless() {
  double best = std::numeric_limits<double>::infinity();
  for (const size_t candidate : live_) best = std::min(best, longest_[candidate]);
  for (const size_t candidate : std::vector<size_t>(live_)) {
    const double behind = shortest_[candidate] - best;
    if (candidate == kIncumbent || behind <= std::log(options_.hopeless_factor)) continue;
    leave(candidate, Exit::hopeless);
    Standing& standing = result_.standings[candidate];
    standing.log_ratio = shortest_[candidate] - shortest_[kIncumbent];
    if (shortest_[candidate] - longest_[kIncumbent] > options_.margin)
      standing.verdict = Verdict::slower;
  }
}

size_t Race::leader(const std::vector<size_t>& among) const {
  size_t best = among.front();
  double lowest = 0;
  for (const size_t candidate : among) {
    const double ratio = ratios_.center(candidate, among.front());
    if (ratio < lowest) {
      lowest = ratio;
      best = candidate;
    }
  }
  return best;
}

void Race::drop_slower() {
  const size_t best = leader(live_);
  const std::vector<size_t> before = live_;
  for (const size_t candidate : before) {
    if (candidate == best || candidate == kIncumbent) continue;
    const Interval interval = ratios_.ratio(candidate, best);
    const bool slower = best == kIncumbent ? interval.low > 0
                                           : interval.center > kChallengerErrors * interval.error;
    if (slower) leave(candidate, Exit::slower);
  }
  // The incumbent is needed until every other candidate has been compared with it.
  if (best == kIncumbent || !is_live(kIncumbent)) return;
  if (result_.standings[best].verdict != Verdict::faster) return;
  const bool compared = all_live([&](size_t candidate) {
    return candidate == kIncumbent || result_.standings[candidate].verdict != Verdict::unclear;
  });
  if (compared) leave(kIncumbent, Exit::slower);
}

std::optional<End> Race::look() {
  if (is_live(kIncumbent)) {
    for (const size_t candidate : live_) {
      if (candidate == kIncumbent) continue;
      const Interval interval = ratios_.ratio(candidate, kIncumbent);
      Standing& standing = result_.standings[candidate];
      standing.verdict = judge(interval, options_.margin);
      standing.log_ratio = interval.center;
      standing.low = interval.low;
      standing.high = interval.high;
      standing.rounds = static_cast<uint32_t>(interval.rounds);
    }
  }
  drop_slower();
  if (live_.size() == 1) return End::one_left;
  const size_t baseline = is_live(kIncumbent) ? kIncumbent : leader(live_);
  const bool tie = all_live([&](size_t candidate) {
    return candidate == baseline || ratios_.ratio(candidate, baseline).within(options_.margin);
  });
  if (tie) return End::tie;
  return std::nullopt;
}

End Race::run_rounds() {
  if (!first_calls() || !calibrate()) return End::time;
  while (true) {
    if (result_.standings[kIncumbent].exit == Exit::failed) return End::incumbent;
    if (live_.size() == 1) return End::one_left;
    if (ratios_.rounds() >= options_.most_rounds) return End::rounds;
    if (out_of_time()) return End::time;
    const Round round = run_round();
    if (round == Round::out_of_time) return End::time;
    const size_t rounds = ratios_.rounds();
    if (round == Round::dropped && rounds < options_.first_look &&
        result_.dropped() % options_.most_dropped == 0) {
      leave_hopeless();
    }
    if (round != Round::accepted) continue;
    if (rounds < options_.first_look) continue;
    if ((rounds - options_.first_look) % options_.look_every != 0) continue;
    if (const std::optional<End> end = look()) return *end;
  }
}

size_t Race::winner() const {
  std::vector<size_t> faster;
  for (const size_t candidate : live_) {
    if (result_.standings[candidate].verdict == Verdict::faster) faster.push_back(candidate);
  }
  if (faster.empty()) return kIncumbent;
  const size_t best = leader(faster);
  for (const size_t candidate : faster) {
    if (ratios_.center(candidate, best) <= options_.margin) return candidate;
  }
  return best;
}

}  // namespace

Result race(const std::vector<Candidate>& candidates, const Options& options,
            const Environment& environment) {
  if (candidates.size() < 2 || candidates.size() > kMostCandidates)
    throw std::invalid_argument("a race needs 2 to 16 candidates");
  return Race(candidates, options, environment).run();
}

}  // namespace opmux::tune::race
