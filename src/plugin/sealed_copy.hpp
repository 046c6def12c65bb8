#pragma once

#include <string>

#include "base/descriptor.hpp"
#include "plugin/checked_file.hpp"

namespace opmux::plugin {

/// A copy of a checked file in memory that nobody can change any more; its digest is that of the
/// file when it was checked. Fails with "plugin.sealed", or "trust.changed" if the bytes are
/// others.
Result<base::Descriptor> sealed_copy(const CheckedFile& file);

/// The path by which a descriptor of this process is opened. Not by way of /proc/self: a debugger
/// would look at itself.
std::string path_of_descriptor(int descriptor);

}  // namespace opmux::plugin
