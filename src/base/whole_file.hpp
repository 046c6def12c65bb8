#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

namespace opmux::base {

/// Writes all bytes to a descriptor at its current position. Returns false with errno set on
/// failure.
bool write_all(int descriptor, std::string_view bytes);

/// Replaces a file atomically: writes a temporary file next to it and renames it, so that readers
/// find either the old or the new text. On failure returns false with errno set and leaves the file
/// unchanged.
bool replace_file(const std::string& path, std::string_view text, unsigned mode);

/// Reads a regular file of at most `most` bytes; does not follow a symbolic link. Fails with
/// "store.read".
Result<std::string> read_whole(const std::string& path, size_t most);

}  // namespace opmux::base
