#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/process.hpp"
#include "health/breaker_rules.hpp"

namespace opmux::health {

/// Lets an operator be published by one thread at a time, and not within kPublicationGapNs of the
/// last time; what comes sooner waits for flush(). Thread-safe.
template <class Sync, class Rules = BreakerRules>
class BasicPublishGate {
 public:
  /// Whether to publish now and then say done(); otherwise it is noted.
  bool request(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    pending_ = true;
    return take(now_ns);
  }
  /// Whether something waited and may be published now.
  bool flush(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    return pending_ && take(now_ns);
  }
  void done(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    busy_ = 0;
    published_ = true;
    last_ns_ = std::max(last_ns_, now_ns);
  }
  /// It was published out of turn.
  void note(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    published_ = true;
    last_ns_ = std::max(last_ns_, now_ns);
  }
  uint64_t next_due_ns() {
    const std::lock_guard lock(mutex_);
    if (!pending_) return UINT64_MAX;
    return published_ ? last_ns_ + kPublicationGapNs : 0;
  }

 private:
  bool take(uint64_t now_ns) {
    // Whoever was at it in a process that forked is not in this one.
    if (busy_ == base::process_number()) return false;
    if (published_ && !Rules::may_publish(now_ns, last_ns_)) return false;
    busy_ = base::process_number();
    pending_ = false;
    return true;
  }
  typename Sync::Mutex mutex_;
  bool published_ = false, pending_ = false;
  uint64_t busy_ = 0;  ///< number of the process that is publishing
  uint64_t last_ns_ = 0;
};

}  // namespace opmux::health
