#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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

/// Copied calls in the order in which they ended, within a number of bytes and, so that what is
/// compared is not of long ago, of calls of each implementation. A forked child starts with none.
/// Thread-safe.
class ShadowQueue {
 public:
  static constexpr uint32_t kMostOfOne = 32;

  /// Why there is no room for another call of this size; nothing: it is taken until give_back().
  std::optional<ShadowSkip> take_room(uint32_t implementation, size_t bytes, size_t limit);
  void give_back(uint32_t implementation, size_t bytes);

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
    std::map<uint32_t, uint32_t> calls;  ///< that have room, by implementation

    void give_back(uint32_t implementation, size_t bytes);
    std::deque<std::unique_ptr<ShadowSample>> samples;
  };
  template <class Use>
  auto with(Use&& use);

  base::ForkGuarded<State> state_;
};

}  // namespace opmux::runtime
