#pragma once

#include <string>

#include "cli/command.hpp"

namespace opmux::cli {

/// Signs a digest with the secret key of a file and writes the signature to `path`.sig. Prints the
/// path, or the error. Returns an exit code.
int write_signature(const std::string& key_file, const std::string& path,
                    const std::string& digest);

/// Signs `file` with the secret key in the file `key`. Returns an exit code.
using SignFile = int (*)(const std::string& file, const std::string& key);
/// Adds the subcommand "sign FILE --key KEY", which calls `sign`.
void add_sign(CLI::App& group, Action& action, const std::string& description,
              const std::string& about_file, SignFile sign);

}  // namespace opmux::cli
