#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/locks.hpp"
#include "shadow/shadow_sampler.hpp"
#include "verify/call_copy.hpp"

namespace opmux::shadow {

/// A copied call that is queued for comparison.
struct ShadowSample {
  std::string op;
  uint32_t implementation = 0;  ///< implementation number
  std::shared_ptr<ShadowCounts> counts;
  verify::CallCopy call;
  uint64_t ended_ns = 0;
  uint64_t took_ns = 0;
};

/// The largest copy of one call if all queued copies may use `limit` bytes. The caller waits for
/// the copying, about 1 ms per MB if the memory is new to the process.
constexpr size_t most_bytes_of_call(size_t limit) {
  constexpr size_t kAlways = size_t{1} << 20, kCalls = 16;
  return std::max(kAlways, limit / kCalls);
}

/// Queue of copied calls in the order in which they ended. Bounded in bytes, and per implementation
/// so that samples stay recent. A forked child starts with an empty queue. Thread-safe.
class ShadowQueue {
 public:
  static constexpr uint32_t kMostOfOne = 32;

  /// Reserves room for a call of this size until give_back(). Returns why there is none, or nullopt
  /// on success.
  std::optional<ShadowSkip> take_room(uint32_t implementation, size_t bytes, size_t limit);
  void give_back(uint32_t implementation, size_t bytes);

  /// Returns whether the queue was empty before.
  bool push(std::unique_ptr<ShadowSample> sample);
  /// The oldest sample; null if the queue is empty. Its room stays reserved until give_back().
  std::unique_ptr<ShadowSample> pop();
  /// Drops all queued samples.
  void clear();

  size_t waiting();

 private:
  struct State {
    uint64_t process = 0;
    size_t taken = 0;
    /// Number of calls with reserved room, by implementation.
    std::map<uint32_t, uint32_t> calls;

    void give_back(uint32_t implementation, size_t bytes);
    std::deque<std::unique_ptr<ShadowSample>> samples;
  };
  template <class Use>
  auto with(Use&& use);

  base::ForkGuarded<State> state_;
};

}  // namespace opmux::shadow
