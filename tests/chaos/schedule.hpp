#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include <opmux/opmux.hpp>

#include "wrong_results.hpp"

/// Implementations that misbehave on a schedule: a seed determines what each one does at its n-th
/// call.
namespace opmux::test {

/// fail: fails halfway with a corrupted output. resource: out of memory, returned or thrown. stall:
/// succeeds late. corrupt: succeeds with a wrong number.
enum class Fault : uint8_t { none, fail, resource, decline, stall, corrupt };

/// The faults of an implementation and their rate; may be changed while calls run.
class FaultSchedule {
 public:
  explicit FaultSchedule(uint64_t seed) : seed_(seed) {}

  /// Applies `fault` to `permille` of the following calls.
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

using TwicePlusOne = void (*)(float* to, const float* from, int64_t count);
inline void twice_plus_one(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 2 * from[i] + 1;
}

inline Outcome short_of_memory(uint64_t call) {
  if (call % 2 == 0) return Outcome::resource;
  throw std::bad_alloc();
}

/// y = 2 x + 1, with the faults of the schedule.
inline Outcome run_scheduled(FaultSchedule& schedule, TwicePlusOne compute, const char* id,
                             CallFrame& call) {
  spoilt_by = nullptr;
  const Fault fault = schedule.next();
  if (fault == Fault::decline) return Outcome::declined;
  if (fault == Fault::resource) return short_of_memory(schedule.calls());
  float* const to = call.data<float>(0);
  const int64_t elements = call.tensor(0).elements();
  if (fault == Fault::fail) {
    for (int64_t i = 0; i < elements / 2; ++i) to[i] = -1;
    return Outcome::failed;
  }
  compute(to, call.data<float>(1), elements);
  if (fault == Fault::corrupt) {
    to[0] = -to[0] - 1;  // Beyond any tolerance.
    spoilt_by = id;
  }
  if (fault == Fault::stall) {
    volatile uint64_t turns = 0;
    while (turns < 100'000) turns = turns + 1;
  }
  return Outcome::ok;
}

/// The workspace that run_in_workspace() asks for grows with the shapes of the calls.
inline uint64_t workspace_for(void*, const opmux_call* call) {
  return 16 * static_cast<uint64_t>(CallFrame(*call).tensor(0).elements());
}

/// run_scheduled() as a kernel in C, with a workspace of which it writes every page. `user_data` is
/// its WorkspaceKernel.
struct WorkspaceKernel {
  FaultSchedule& schedule;
  const char* id;
  std::atomic<uint64_t> too_small{0};  ///< calls with less workspace than asked for
};
inline int32_t run_in_workspace(void* user_data, const opmux_call* call) {
  auto& kernel = *static_cast<WorkspaceKernel*>(user_data);
  const uint64_t size = workspace_for(nullptr, call);
  if (call->workspace_size < size) kernel.too_small.fetch_add(1);
  auto* const bytes = static_cast<volatile char*>(call->workspace);
  for (uint64_t at = 0; at < call->workspace_size; at += 4096) bytes[at] = 1;
  CallFrame frame(*call);
  try {
    return static_cast<int32_t>(run_scheduled(kernel.schedule, twice_plus_one, kernel.id, frame));
  } catch (const std::bad_alloc&) {
    return OPMUX_RESOURCE;
  }
}

}  // namespace opmux::test
