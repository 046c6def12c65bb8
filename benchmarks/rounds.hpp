#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace opmux::bench {

inline double now_ns() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

/// Time that this thread really ran: a machine that does other things too does not count.
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

/// Something measured: runs `count` calls. Given one round after the other, all in turn, so that
/// what the machine does meanwhile hits all alike.
struct Subject {
  std::string name;
  std::function<void(int count)> run;
  int count = 20000;
  std::vector<double> rounds = {};  ///< nanoseconds per call

  double ns() const { return median(rounds); }
};

/// One round of each.
inline void measure_once(std::vector<Subject>& subjects) {
  for (Subject& subject : subjects) {
    // The better of two short runs: one interruption does not count.
    double best = 1e18;
    for (int part = 0; part < 2; ++part) {
      const double start = thread_ns();
      subject.run(subject.count);
      best = std::min(best, (thread_ns() - start) / subject.count);
    }
    subject.rounds.push_back(best);
  }
}

inline void measure(std::vector<Subject>& subjects, int rounds) {
  for (Subject& subject : subjects) subject.run(subject.count / 10 + 1);
  for (int round = 0; round < rounds; ++round) measure_once(subjects);
}

/// One line of the result: a figure, its limit, whether it holds.
struct Figure {
  std::string name;
  double value = 0;
  double limit = 0;
  std::string unit;
  bool at_least = false;  ///< the limit is a lower one
  std::string note = {};

  bool holds(double slack) const {
    return at_least ? value * slack >= limit : value <= limit * slack;
  }
};

}  // namespace opmux::bench
