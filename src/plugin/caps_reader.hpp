#pragma once

#include <opmux/caps.hpp>
#include <opmux/status.hpp>

namespace opmux::plugin {

/// Converts capabilities from the C struct. Null means no restrictions on the backend's device. The
/// values are checked against the schema later. Fails with the reasons of plugin/bounded_read.hpp.
Result<Caps> read_caps(const opmux_caps* caps);

}  // namespace opmux::plugin
