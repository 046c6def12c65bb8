#pragma once

#include <string>

namespace opmux::cli {

/// Signs a digest with the secret key of a file and writes the signature to `path`.sig. Prints the
/// path, or the error. Returns an exit code.
int write_signature(const std::string& key_file, const std::string& path,
                    const std::string& digest);

}  // namespace opmux::cli
