#pragma once

namespace opmux::plugin {

/// Whether an address of this process lies in a mapping of the file that a descriptor refers to.
/// Both are looked up in the system's list of mappings: what stat says of a file may be another
/// device and number (overlays, snapshots).
bool lies_in(const void* address, int descriptor);

}  // namespace opmux::plugin
