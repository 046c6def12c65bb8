#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace opmux::conformance {

/// Pseudo-random numbers that are the same on every machine. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }
  /// An independent sequence for each seed, word (operator) and number (case).
  Random(uint64_t seed, std::string_view word, uint64_t number)
      : Random(seed * 0x9e3779b97f4a7c15u ^ number * 0xd1342543de82ef95u) {
    for (const char c : word) state_ = state_ * 0x100000001b3u ^ static_cast<unsigned char>(c);
    next();
  }

  /// splitmix64.
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In [0, count); 0 if count is not positive.
  int64_t below(int64_t count) {
    return count <= 0 ? 0 : static_cast<int64_t>(next() % static_cast<uint64_t>(count));
  }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  /// Approximately normal: mean 0, variance 1, magnitude below 3.5. A sum of four uniform numbers.
  double normal() { return (unit() + unit() + unit() + unit() - 2) * 1.7320508075688772; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

 private:
  uint64_t state_;
};

}  // namespace opmux::conformance
