#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/system/clock.hpp"
#include "tune/race/noise.hpp"

namespace opmux::tune::race {

/// The time that the hypervisor gave to others, in ticks of 10 ms, for each processor by its
/// number. Reads the text of /proc/stat; empty if the text has no processors.
std::vector<uint64_t> parse_steal(std::string_view stat);

/// Reads /proc/stat again and again without opening it each time.
class StealCounter {
 public:
  StealCounter();
  ~StealCounter();
  StealCounter(const StealCounter&) = delete;
  StealCounter& operator=(const StealCounter&) = delete;

  /// Empty on a machine without /proc/stat.
  std::vector<uint64_t> read();

 private:
  int file_;
  std::vector<char> text_;
};

/// The number of times that the kernel took the processor from the calling thread.
uint64_t involuntary_switches();

/// Compares the duration of a fixed piece of work with the median of the last durations. A
/// deviation means that the processor changed its clock or was shared during the round.
class Ruler {
 public:
  explicit Ruler(double tolerance = 0.03) : tolerance_(tolerance) {}

  /// True if the duration fits the former ones. Stores it in either case, so that a lasting
  /// change of the speed is accepted after half of the window. The first durations always fit.
  bool fits(double duration_ns);

 private:
  static constexpr size_t kWindow = 15;
  static constexpr size_t kFirst = 5;

  double tolerance_;
  std::vector<double> durations_;  // the last kWindow
  size_t next_ = 0;
};

/// About 20 us of arithmetic in which each step needs the result of the step before.
uint64_t ruler_kernel(uint64_t start);

/// Steal, involuntary switches and the ruler of this machine, for the thread that makes the calls.
/// With several threads, steal of any processor that the thread may use counts, else only steal of
/// the one that it runs on.
class SystemNoise final : public NoiseObserver {
 public:
  SystemNoise(const base::Clock& clock, uint32_t threads);

  void begin_round() override;
  Noise end_round() override;

 private:
  bool stolen();
  bool ruler_fits();

  const base::Clock& clock_;
  uint32_t threads_;
  StealCounter counter_;
  std::vector<uint64_t> steal_;
  uint64_t switches_ = 0;
  Ruler ruler_;
  bool fitted_ = true;  // the ruler at the beginning of the round
  uint64_t sum_ = 0;    // the last result of the ruler kernel, stored so that it is computed
};

}  // namespace opmux::tune::race
