#pragma once

#include "base/descriptor.hpp"
#include "plugin/checked_file.hpp"

namespace opmux::plugin {

/// A copy of a checked file in memory that nobody can change any more; its digest is that of the
/// file when it was checked. Fails with "plugin.sealed", or "trust.changed" if the bytes are
/// others.
Result<base::Descriptor> sealed_copy(const CheckedFile& file);

}  // namespace opmux::plugin
