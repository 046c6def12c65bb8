#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace opmux::bench {

inline double now_ns() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

/// CPU time of this thread, which excludes the time that other threads and processes take.
inline double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A measured subject: `run` makes `count` calls. All subjects alternate round by round, so that
/// other load on the machine affects them equally.
struct Subject {
  std::string name;
  std::function<void(int count)> run;
  int count = 20000;
  std::vector<double> rounds = {};  ///< nanoseconds per call

  double ns() const { return median(rounds); }
  /// The median of the ratios of each round. Both times of a ratio are from the same moment, which
  /// matters on machines whose speed changes during a run.
  double against(const Subject& other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < rounds.size(); ++i) ratios.push_back(rounds[i] / other.rounds[i]);
    return median(std::move(ratios));
  }
};

/// Measures one round of each subject.
inline void measure_once(std::vector<Subject>& subjects) {
  for (Subject& subject : subjects) {
    // Keeps the better of two short runs, so that a single interruption has no effect.
    double best = 1e18;
    for (int part = 0; part < 2; ++part) {
      const double start = thread_ns();
      subject.run(subject.count);
      best = std::min(best, (thread_ns() - start) / subject.count);
    }
    subject.rounds.push_back(best);
  }
}

/// Warms up every subject, then measures `rounds` rounds.
inline void measure(std::vector<Subject>& subjects, int rounds) {
  for (Subject& subject : subjects) subject.run(subject.count / 10 + 1);
  for (int round = 0; round < rounds; ++round) measure_once(subjects);
}

/// One line of the result: a measured value and its limit.
struct Figure {
  std::string name;
  double value = 0;
  double limit = 0;
  std::string unit;
  bool at_least = false;  ///< the limit is a lower bound
  std::string note = {};

  bool holds(double slack) const {
    return at_least ? value * slack >= limit : value <= limit * slack;
  }
};

}  // namespace opmux::bench
