#pragma once

#include <cstdint>

#include "base/system/clock.hpp"
#include "registry/backend.hpp"

namespace opmux::dispatch {

/// Measures how long one call takes, from its construction to stop(). A call of a backend with
/// streams returns before its work is done, so its time is read from two events of the device,
/// which the backend records around it on the stream of the call. Reading them waits for the work.
class CallTimer {
 public:
  CallTimer(const registry::Backend& backend, const base::Clock& clock, Device device,
            void* stream);
  ~CallTimer();
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  /// Nanoseconds since the construction; 0 if the device could not tell. Call it once, after a call
  /// that ended ok.
  uint64_t stop();

 private:
  void* record() const;

  const registry::DeviceAccess* const events_;  ///< null: the clock is read
  const base::Clock& clock_;
  const opmux_device device_;
  void* const stream_;
  uint64_t started_ = 0;
  void* first_ = nullptr;
  void* last_ = nullptr;
};

}  // namespace opmux::dispatch
