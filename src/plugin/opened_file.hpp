#pragma once

#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "plugin/checked_file.hpp"
#include "plugin/library.hpp"

namespace opmux::plugin {

/// A checked file whose code is in this process.
struct OpenedFile {
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;  ///< the linker's, else from size and time of change
  /// Shared by all who opened the same bytes; with the last one to go the code goes too.
  std::shared_ptr<void> code;
};

/// Opens a checked file or a sealed copy of it, by a descriptor that then stays open for ever.
/// Bytes that are open already are not opened again. Fails as open_library does, or with
/// "trust.changed" if somebody wrote to the file since it was checked.
Result<OpenedFile> open_once(const CheckedFile& file, base::Descriptor sealed = {});

/// The code stays mapped until the process ends.
void keep_for_ever(std::shared_ptr<void> code);

}  // namespace opmux::plugin
