#pragma once

#include <atomic>
#include <cstdint>

#include <opmux/opmux.hpp>

/// Implementations that misbehave on schedule: what each does at its n-th call follows from a seed.
namespace opmux::test {

/// fail: halfway, with an output that is spoilt. stall: ends well, late.
enum class Fault : uint8_t { none, fail, resource, decline, stall };

/// Which faults an implementation has, and how often; may be changed while calls run.
class FaultSchedule {
 public:
  explicit FaultSchedule(uint64_t seed) : seed_(seed) {}

  /// `permille` of the calls from now on.
  void set(Fault fault, uint32_t permille) {
    mood_.store(static_cast<uint32_t>(fault) << 16 | permille, std::memory_order_relaxed);
  }
  Fault next() {
    const uint32_t mood = mood_.load(std::memory_order_relaxed);
    const uint64_t draw = mix(seed_ + calls_.fetch_add(1, std::memory_order_relaxed));
    return draw % 1000 < (mood & 0xFFFF) ? static_cast<Fault>(mood >> 16) : Fault::none;
  }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  static uint64_t mix(uint64_t word) {
    word += 0x9E3779B97F4A7C15;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * 0x94D049BB133111EB;
    return word ^ word >> 31;
  }

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint32_t> mood_{0};
};

/// y = 2 x + 1, as the schedule lets it.
inline Outcome run_scheduled(FaultSchedule& schedule, CallFrame& call) {
  const Fault fault = schedule.next();
  if (fault == Fault::decline) return Outcome::declined;
  if (fault == Fault::resource) return Outcome::resource;
  const TensorView y = call.tensor(0);
  float* const to = call.data<float>(0);
  const float* const from = call.data<float>(1);
  const int64_t elements = y.elements();
  const int64_t done = fault == Fault::fail ? elements / 2 : elements;
  for (int64_t i = 0; i < done; ++i) to[i] = 2 * from[i] + (fault == Fault::fail ? 7.0f : 1.0f);
  if (fault == Fault::stall) {
    volatile uint64_t turns = 0;
    while (turns < 100'000) turns = turns + 1;
  }
  return fault == Fault::fail ? Outcome::failed : Outcome::ok;
}

}  // namespace opmux::test
