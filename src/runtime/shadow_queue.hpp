#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/fork_guarded.hpp"
#include "runtime/shadow_counts.hpp"
#include "verify/call_copy.hpp"

namespace opmux::runtime {

/// A copied call that waits to be compared.
struct ShadowSample {
  std::string op;
  uint32_t implementation = 0;  ///< its number
  std::shared_ptr<ShadowCounts> counts;
  verify::CallCopy call;
  uint64_t ended_ns = 0;
};

/// Copied calls in the order in which they ended, within a number of bytes. A forked child starts
/// with none. Thread-safe.
class ShadowQueue {
 public:
  /// Whether there is room for so many bytes more; they are taken until give_back().
  bool take_room(size_t bytes, size_t limit);
  void give_back(size_t bytes);

  /// Returns whether it was empty before.
  bool push(std::unique_ptr<ShadowSample> sample);
  /// Null if there is none; its room stays taken.
  std::unique_ptr<ShadowSample> pop();
  /// Forgets all that wait.
  void clear();

  size_t waiting();

 private:
  struct State {
    uint64_t process = 0;
    size_t taken = 0;
    std::deque<std::unique_ptr<ShadowSample>> samples;
  };
  template <class Use>
  auto with(Use&& use);

  base::ForkGuarded<State> state_;
};

}  // namespace opmux::runtime
