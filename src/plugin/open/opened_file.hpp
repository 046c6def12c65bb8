#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/system/files.hpp"
#include "plugin/open/library.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::plugin {

/// Whether an address of this process is in a mapping of the file behind a descriptor. Both are
/// looked up in /proc/self/maps, because stat may report another device and inode (overlays,
/// snapshots).
bool lies_in(const void* address, int descriptor);

/// Copies of a checked file and its libraries in sealed memory, which can no longer be changed.
struct SealedFile {
  base::Descriptor file;
  std::vector<base::Descriptor> libraries;

  explicit operator bool() const { return static_cast<bool>(file); }
  /// The copies in the form in which they are opened.
  LibraryFile as(const CheckedFile& original) const;
};

/// Makes the copies and compares their digests with those of the check. Fails with "plugin.sealed",
/// or with "trust.changed" if a digest differs.
Result<SealedFile> sealed_copy(const CheckedFile& file);

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

/// Opens a checked file with its libraries, or sealed copies of them, through descriptors that then
/// stay open permanently. Bytes that are already open are not opened again. Fails as open_library()
/// does, or with "trust.changed" if a file was written to after it was checked.
Result<OpenedFile> open_once(const CheckedFile& file, SealedFile sealed = {});

/// Keeps the code mapped until the process ends.
void keep_for_ever(std::shared_ptr<void> code);

}  // namespace opmux::plugin
