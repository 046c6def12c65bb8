#pragma once

#include <opmux/caps.hpp>
#include <opmux/status.hpp>

namespace opmux::plugin {

/// Capabilities from their C form; null gives caps without restrictions on the backend's device.
/// Values are judged later, against the schema. Fails with reasons of plugin/bounded_read.hpp.
Result<Caps> read_caps(const opmux_caps* caps);

}  // namespace opmux::plugin
