#pragma once

#include "base/descriptor.hpp"
#include "plugin/checked_file.hpp"

namespace opmux::plugin {

/// Copies a checked file to sealed memory, which can no longer be changed, and compares its digest
/// with that of the check. Fails with "plugin.sealed", or with "trust.changed" if the digests
/// differ.
Result<base::Descriptor> sealed_copy(const CheckedFile& file);

}  // namespace opmux::plugin
