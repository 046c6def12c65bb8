#pragma once

#include <chrono>

#include "registry/backend.hpp"

namespace opmux::plugin {

/// The time after which a plugin's is_available counts as hung. Long, because starting the drivers
/// of several devices takes seconds.
inline constexpr std::chrono::milliseconds kAvailabilityDeadline = std::chrono::seconds(30);

/// Replaces the availability probe of a backend by one that records it in the crash journal and
/// refuses its calls of the runtime (base::NoCallbackGuard). It runs on the thread that asks.
void journal_availability(registry::BackendDraft& backend);

/// The same for a backend of a plugin, which may hang: the probe runs on a separate thread. If it
/// does not return within the deadline, the backend is unavailable until the process ends. The
/// thread cannot be ended, because it may hold locks of the C library; it keeps the plugin loaded.
/// If the system allows no further thread, the probe runs on the thread that asks, without a
/// deadline; also if that thread is inside a plugin's constructor, whose lock of the dynamic loader
/// the probe may need.
void watch_availability(registry::BackendDraft& backend,
                        std::chrono::milliseconds deadline = kAvailabilityDeadline);

}  // namespace opmux::plugin
