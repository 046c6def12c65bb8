#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

namespace opmux::base {

/// Writes all of it where a descriptor stands. False, errno set, if that fails.
bool write_all(int descriptor, std::string_view bytes);

/// Writes a text beside a file and puts it in its place, so that readers find the old or the new
/// one. False, errno set, if that fails; then the file is as it was.
bool replace_file(const std::string& path, std::string_view text, unsigned mode);

/// The contents of a regular file of at most `most` bytes that is no link. Fails with "store.read".
Result<std::string> read_whole(const std::string& path, size_t most);

}  // namespace opmux::base
