#pragma once

namespace opmux::plugin {

/// Whether an address of this process is in a mapping of the file behind a descriptor. Both are
/// looked up in /proc/self/maps, because stat may report another device and inode (overlays,
/// snapshots).
bool lies_in(const void* address, int descriptor);

}  // namespace opmux::plugin
