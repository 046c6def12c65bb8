#pragma once

#include <atomic>
#include <cstdint>

#include <opmux/operator.hpp>

namespace opmux::conformance {

/// Thread pool for an implementation under test. The threads start at the same moment and take the
/// pieces of work from last to first, so that reliance on an order or on a single thread shows.
class Pool {
 public:
  static constexpr int kThreads = 3;

  CallOptions options() {
    CallOptions options;
    options.max_threads = kThreads;
    options.parallel_for = &Pool::parallel_for;
    options.pool = this;
    return options;
  }
  /// Whether a piece of work faulted. The other pieces still ran.
  bool crashed() const { return crashed_; }

 private:
  static void parallel_for(void* pool, int64_t count, void* context,
                           void (*body)(void* context, int64_t index));
  std::atomic<bool> crashed_{false};
};

}  // namespace opmux::conformance
