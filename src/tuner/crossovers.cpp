#include "tuner/crossovers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace opmux::tuner {
namespace {

/// Gaps of this size between two outcomes are not halved.
int64_t finest_gap(int64_t low) { return std::max<int64_t>(1, low / 16); }

/// A value between two others, in the middle of their logarithms.
int64_t middle_of(int64_t low, int64_t high) {
  const double middle =
      std::sqrt(static_cast<double>(std::max<int64_t>(low, 1)) * static_cast<double>(high));
  return std::clamp(static_cast<int64_t>(middle), low + 1, high - 1);
}

double width_of(const Stretch& stretch) {
  return std::log2(static_cast<double>(stretch.last + 1) /
                   static_cast<double>(std::max<int64_t>(stretch.first, 1)));
}

class Search {
 public:
  Search(int64_t first, int64_t last,
         const std::function<std::optional<RaceOutcome>(int64_t)>& measure,
         const std::function<uint64_t()>& random, const CrossoverOptions& options)
      : first_(first), last_(last), measure_(measure), random_(random), options_(options) {}

  Crossovers run() {
    if (measure_grid() && halve_gaps() && check_stretches()) halve_gaps();
    found_.stretches = stretches();
    found_.complete = !ended_;
    while (found_.stretches.size() > options_.most_thresholds + 1) join_narrowest();
    return std::move(found_);
  }

 private:
  /// False if the search ends.
  bool ask(int64_t value) {
    if (outcomes_.contains(value)) return true;
    std::optional<RaceOutcome> outcome;
    if (!ended_ && outcomes_.size() < options_.most_values) outcome = measure_(value);
    ended_ = !outcome;
    if (outcome) outcomes_.emplace(value, *std::move(outcome));
    return !ended_;
  }

  bool measure_grid() {
    if (!ask(first_)) return false;
    for (int64_t value = 1; value < last_ && value > 0; value *= 2) {
      if (value > first_ && !ask(value)) return false;
    }
    return ask(last_);
  }

  /// False if the search ends.
  bool halve_gaps() {
    for (auto low = outcomes_.begin(); std::next(low) != outcomes_.end();) {
      const auto high = std::next(low);
      if (low->second == high->second || high->first - low->first <= finest_gap(low->first)) {
        low = high;
      } else if (!ask(middle_of(low->first, high->first))) {
        return false;
      }
    }
    return true;
  }

  /// False if the search ends.
  bool check_stretches() {
    for (const Stretch& stretch : stretches()) {
      const auto values = static_cast<uint64_t>(stretch.last - stretch.first + 1);
      const int64_t value = stretch.first + static_cast<int64_t>(random_() % values);
      if (outcomes_.contains(value)) continue;
      if (!ask(value)) return false;
      ++found_.checked;
      if (outcomes_.at(value) != stretch.outcome) ++found_.disagreed;
    }
    return true;
  }

  /// The outcomes as stretches. The gaps between them are in one of the two if they are narrow.
  std::vector<Stretch> stretches() const {
    std::vector<Stretch> made;
    for (const auto& [value, outcome] : outcomes_) {
      if (made.empty() || made.back().outcome != outcome)
        made.push_back({value, value, {}, outcome});
      made.back().last = value;
      made.back().measured.push_back(value);
    }
    for (size_t i = 1; i < made.size(); ++i) {
      Stretch &low = made[i - 1], &high = made[i];
      if (high.first - low.last > finest_gap(low.last)) continue;
      if (high.outcome.keeps()) {
        high.first = low.last + 1;
      } else {
        low.last = high.first - 1;
      }
    }
    return made;
  }

  /// Joins the narrowest stretch with a neighbour, if possible one with the same baseline, because
  /// their measurements can be put together.
  void join_narrowest() {
    std::vector<Stretch>& all = found_.stretches;
    const auto narrowest = std::ranges::min_element(
        all, [](const Stretch& a, const Stretch& b) { return width_of(a) < width_of(b); });
    const auto at = static_cast<size_t>(narrowest - all.begin());
    const auto fits = [&](size_t other) {
      return other < all.size() && all[other].outcome.baseline == all[at].outcome.baseline;
    };
    const bool up = at == 0 || (at + 1 < all.size() && !fits(at - 1) && fits(at + 1));
    join(up ? at : at - 1);
    for (size_t i = all.size() - 1; i > 0; --i) {
      if (all[i].outcome == all[i - 1].outcome) join(i - 1);
    }
  }

  void join(size_t low) {
    std::vector<Stretch>& all = found_.stretches;
    Stretch &one = all[low], &other = all[low + 1];
    if (width_of(other) > width_of(one)) one.outcome = other.outcome;
    one.last = other.last;
    one.measured.insert(one.measured.end(), other.measured.begin(), other.measured.end());
    all.erase(all.begin() + static_cast<ptrdiff_t>(low) + 1);
  }

  const int64_t first_, last_;
  const std::function<std::optional<RaceOutcome>(int64_t)>& measure_;
  const std::function<uint64_t()>& random_;
  const CrossoverOptions& options_;
  std::map<int64_t, RaceOutcome> outcomes_;
  bool ended_ = false;
  Crossovers found_;
};

}  // namespace

Crossovers find_crossovers(int64_t first, int64_t last,
                           const std::function<std::optional<RaceOutcome>(int64_t)>& measure,
                           const std::function<uint64_t()>& random,
                           const CrossoverOptions& options) {
  return Search(first, last, measure, random, options).run();
}

}  // namespace opmux::tuner
