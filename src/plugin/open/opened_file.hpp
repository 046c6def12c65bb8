#pragma once

#include <memory>
#include <string>

#include "base/system/files.hpp"
#include "plugin/open/library.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::plugin {

/// Whether an address of this process is in a mapping of the file behind a descriptor. Both are
/// looked up in /proc/self/maps, because stat may report another device and inode (overlays,
/// snapshots).
bool lies_in(const void* address, int descriptor);

/// Copies a checked file to sealed memory, which can no longer be changed, and compares its digest
/// with that of the check. Fails with "plugin.sealed", or with "trust.changed" if the digests
/// differ.
Result<base::Descriptor> sealed_copy(const CheckedFile& file);

/// The linker's build id of a file, else a text derived from its size and modification time.
std::string build_id_of(const CheckedFile& file);

/// A checked file whose code is loaded in this process.
struct OpenedFile {
  opmux_plugin_query_fn query = nullptr;
  /// The linker's build id, else derived from size and modification time.
  std::string build_id;
  /// Shared by all users of the same bytes. The code is unmapped with the last reference.
  std::shared_ptr<void> code;
};

/// Opens a checked file, or a sealed copy of it, through a descriptor that then stays open
/// permanently. Bytes that are already open are not opened again. Fails as open_library() does, or
/// with "trust.changed" if the file was written to after it was checked.
Result<OpenedFile> open_once(const CheckedFile& file, base::Descriptor sealed = {});

/// Keeps the code mapped until the process ends.
void keep_for_ever(std::shared_ptr<void> code);

}  // namespace opmux::plugin
