#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "plugin/key_file.hpp"
#include "plugin/trusted_path.hpp"

namespace opmux::plugin {

/// The text that is signed for a file with this SHA-256.
std::string signed_text(std::string_view sha256);

/// Signs a file with this SHA-256. Fails with "trust.key" if the seed is malformed, and with
/// "trust.unsupported" if the library was built without signatures.
Result<SignatureFile> make_signature(const SecretKeyFile& key, std::string_view sha256);

/// Finds the key of the keyring that signed the file at `path`, whose SHA-256 is given; `day` is
/// today in UTC. Returns the key's name. Fails with "trust.unsigned" (no PATH.sig),
/// "trust.signature" (malformed signature), "trust.tampered" (the signature does not match the
/// contents), "trust.key" (the key is not in the keyring), "trust.key_expired", "trust.keyring"
/// (the folder or a key in it is missing, malformed or not trusted) or "trust.unsupported".
Result<std::string> find_signer(const std::string& path, std::string_view sha256,
                                const std::string& keyring, std::string_view day,
                                const PathRules& rules);

}  // namespace opmux::plugin
