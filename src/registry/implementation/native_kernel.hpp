#pragma once

#include <opmux/implementation.hpp>

#include "registry/implementation/implementation_id.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// Makes a draft from an implementation written in C++. The draft owns copies of its functions, and
/// exceptions from them become OPMUX_FAILED.
ImplementationDraft draft_of(const Implementation& implementation, const ImplementationId& id);

}  // namespace opmux::registry
