#pragma once

#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "plugin/checked_file.hpp"
#include "plugin/library.hpp"

namespace opmux::plugin {

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
