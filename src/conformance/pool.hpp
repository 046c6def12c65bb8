#pragma once

#include <atomic>
#include <cstdint>

#include <opmux/operator.hpp>

namespace opmux::conformance {

/// Threads to lend to an implementation: several start at the same moment and take the pieces from
/// the last to the first, so that what relies on an order or on being alone goes wrong.
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
  /// A piece of work raised a fault; it was stopped, the others went on.
  bool crashed() const { return crashed_; }

 private:
  static void parallel_for(void* pool, int64_t count, void* context,
                           void (*body)(void* context, int64_t index));
  std::atomic<bool> crashed_{false};
};

}  // namespace opmux::conformance
