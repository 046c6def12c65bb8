#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/process.hpp"
#include "health/breaker_rules.hpp"

namespace opmux::health {

/// Admits one publishing thread per operator at a time, and no publication within kPublicationGapNs
/// of the last one. Earlier requests stay pending until flush(). Thread-safe.
template <class Sync, class Rules = BreakerRules>
class BasicPublishGate {
 public:
  /// Returns true if the caller must publish now and then call done(). Otherwise the request stays
  /// pending.
  bool request(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    pending_ = true;
    return take(now_ns);
  }
  /// Returns true if a request is pending and the caller must publish now and then call done().
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
  /// Records a publication that did not go through request().
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
    // A publisher in the parent process does not exist in a forked child, so its claim is ignored
    // there.
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
