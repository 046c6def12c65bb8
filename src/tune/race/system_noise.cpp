#include "tune/race/system_noise.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace opmux::tune::race {
namespace {

/// Removes the next word, which ends at a blank or at the end of the line.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

bool read_number(std::string_view word, uint64_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size();
}

constexpr uint64_t kMostProcessors = 65'536;

}  // namespace

std::vector<uint64_t> parse_steal(std::string_view stat) {
  // cpu0 user nice system idle iowait irq softirq steal guest guest_nice
  constexpr int kStealField = 8;
  std::vector<uint64_t> steal;
  while (stat.starts_with("cpu")) {
    const size_t end = stat.find('\n');
    if (end == std::string_view::npos) break;  // a line that was cut off
    std::string_view line = stat.substr(0, end);
    stat.remove_prefix(end + 1);
    uint64_t processor = 0;
    // The first line is the sum over all processors and has no number.
    if (!read_number(take_word(line).substr(3), processor) || processor >= kMostProcessors)
      continue;
    std::string_view word;
    for (int field = 0; field < kStealField; ++field) word = take_word(line);
    uint64_t ticks = 0;
    if (!read_number(word, ticks)) continue;
    if (steal.size() <= processor) steal.resize(processor + 1);
    steal[processor] = ticks;
  }
  return steal;
}

StealCounter::StealCounter() : file_(::open("/proc/stat", O_RDONLY | O_CLOEXEC)), text_(16'384) {}

StealCounter::~StealCounter() {
  if (file_ >= 0) ::close(file_);
}

std::vector<uint64_t> StealCounter::read() {
  if (file_ < 0) return {};
  while (true) {
    const ssize_t size = ::pread(file_, text_.data(), text_.size(), 0);
    if (size < 0) return {};
    const std::string_view text(text_.data(), static_cast<size_t>(size));
    // Other lines follow those of the processors.
    if (text.size() < text_.size() || text.find("\nintr") != std::string_view::npos)
      return parse_steal(text);
    text_.resize(2 * text_.size());
  }
}

uint64_t involuntary_switches() {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

bool Ruler::fits(double duration_ns) {
  bool fits = true;
  if (durations_.size() >= kFirst) {
    std::vector<double> sorted = durations_;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    fits = std::abs(duration_ns - *middle) <= tolerance_ * *middle;
  }
  if (durations_.size() < kWindow) {
    durations_.push_back(duration_ns);
  } else {
    durations_[next_] = duration_ns;
    next_ = (next_ + 1) % kWindow;
  }
  return fits;
}

uint64_t ruler_kernel(uint64_t start) {
  uint64_t value = start;
  for (int step = 0; step < 16'384; ++step) {
    value = value * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
  }
  return value;
}

SystemNoise::SystemNoise(const base::Clock& clock, uint32_t threads)
    : clock_(clock), threads_(threads) {
  for (int i = 0; i < 8; ++i) ruler_fits();
}

bool SystemNoise::ruler_fits() {
  const uint64_t before = clock_.now_ns();
  sum_ = ruler_kernel(sum_);
  return ruler_.fits(static_cast<double>(clock_.now_ns() - before));
}

bool SystemNoise::stolen() {
  const std::vector<uint64_t> before = std::move(steal_);
  steal_ = counter_.read();
  const auto grew = [&](size_t processor) {
    return processor < before.size() && processor < steal_.size() &&
           steal_[processor] > before[processor];
  };
  if (threads_ <= 1) {
    const int here = ::sched_getcpu();
    return here >= 0 && grew(static_cast<size_t>(here));
  }
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // Machines with more processors than the set can hold: all of them count.
  const bool known = ::sched_getaffinity(0, sizeof usable, &usable) == 0;
  for (size_t processor = 0; processor < steal_.size(); ++processor) {
    if (known && (processor >= CPU_SETSIZE || !CPU_ISSET(processor, &usable))) continue;
    if (grew(processor)) return true;
  }
  return false;
}

void SystemNoise::begin_round() {
  fitted_ = ruler_fits();
  steal_ = counter_.read();
  switches_ = involuntary_switches();
}

Noise SystemNoise::end_round() {
  const bool switched = involuntary_switches() > switches_;
  const bool was_stolen = stolen();
  // Each reading is compared, so that the ruler knows the machine also after a dropped round.
  const bool fits = ruler_fits() && fitted_;
  if (was_stolen) return Noise::steal;
  if (switched) return Noise::context_switch;
  return fits ? Noise::none : Noise::ruler;
}

}  // namespace opmux::tune::race
