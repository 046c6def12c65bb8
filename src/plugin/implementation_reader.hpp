#pragma once

#include <memory>
#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/record.hpp"

namespace opmux::plugin {

/// Converts one implementation from the C struct. Fails as read_plugin does.
Result<registry::ImplementationDraft> read_implementation(const opmux_impl& from,
                                                          const std::string& build_id,
                                                          const std::shared_ptr<void>& owner);

}  // namespace opmux::plugin
