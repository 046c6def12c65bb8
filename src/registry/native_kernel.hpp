#pragma once

#include <opmux/implementation.hpp>

#include "registry/names.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// The kernel of an implementation written in C++, owning its functions. No exception leaves them.
ImplementationDraft draft_of(const Implementation& implementation, const ImplementationId& id);

}  // namespace opmux::registry
