#pragma once

#include <string>
#include <string_view>

namespace opmux::config {

/// Writes a text beside a file and puts it in its place, so that readers find the old or the new
/// one. False, errno set, if that fails; then the file is as it was.
bool replace_file(const std::string& path, std::string_view text, unsigned mode);

}  // namespace opmux::config
