#pragma once

#include "cli/command.hpp"

namespace opmux::cli {

/// `opmux tune sign`: writes the signature of a bundle.
void add_tune_sign(CLI::App& tune, Action& action);

/// Prints which key of the keyring signed a bundle whose header has this digest, or why the
/// signature does not hold. Returns an exit code.
int verify_signature(const std::string& path, const std::string& digest,
                     const std::string& keyring);

}  // namespace opmux::cli
