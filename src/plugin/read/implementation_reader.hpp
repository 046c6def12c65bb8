#pragma once

#include <memory>
#include <string>

#include <opmux/abi.h>
#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

#include "registry/record.hpp"

namespace opmux::plugin {

/// Converts capabilities from the C struct. Null means no restrictions on the backend's device. The
/// values are checked against the schema later. Fails with the reasons of plugin/bounded_read.hpp.
Result<Caps> read_caps(const opmux_caps* caps);

/// Converts one implementation from the C struct. Fails as read_plugin does.
Result<registry::ImplementationDraft> read_implementation(const opmux_impl& from,
                                                          const std::string& build_id,
                                                          const std::shared_ptr<void>& owner);

}  // namespace opmux::plugin
