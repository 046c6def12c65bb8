#include "dispatch/plan/call_timer.hpp"

namespace opmux::dispatch {

CallTimer::CallTimer(const registry::Backend& backend, const base::Clock& clock, Device device,
                     void* stream)
    : events_(backend.history() != nullptr ? backend.device() : nullptr),
      clock_(clock),
      device_{device.type, device.id},
      stream_(stream) {
  if (events_ == nullptr) {
    started_ = clock_.now_ns();
  } else {
    backend.mark_used();
    first_ = record();
  }
}

CallTimer::~CallTimer() {
  for (void* const event : {first_, last_}) {
    if (event != nullptr) events_->functions.event_destroy(events_->user_data, event);
  }
}

void* CallTimer::record() const {
  void* event = nullptr;
  const int32_t outcome =
      events_->functions.event_record(events_->user_data, device_, stream_, &event);
  return outcome == OPMUX_OK ? event : nullptr;
}

uint64_t CallTimer::stop() {
  if (events_ == nullptr) return clock_.now_ns() - started_;
  if (first_ != nullptr) last_ = record();
  uint64_t nanoseconds = 0;
  const bool known =
      last_ != nullptr && events_->functions.event_elapsed_ns(events_->user_data, first_, last_,
                                                              &nanoseconds) == OPMUX_OK;
  return known ? nanoseconds : 0;
}

}  // namespace opmux::dispatch
