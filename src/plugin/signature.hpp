#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "plugin/key_file.hpp"
#include "plugin/trusted_path.hpp"

namespace opmux::plugin {

/// The text that is signed for a file with that SHA-256.
std::string signed_text(std::string_view sha256);

/// The signature of a file with that SHA-256. Fails with "trust.key" if the seed is none,
/// "trust.unsupported" if the library was built without signatures.
Result<SignatureFile> make_signature(const SecretKeyFile& key, std::string_view sha256);

/// Finds a key of the keyring that signed the file at a path, whose SHA-256 is known; `day` is
/// today in UTC. Gives the key's name. Fails with "trust.unsigned" (no PATH.sig), "trust.signature"
/// (that is malformed), "trust.tampered" (it belongs to other bytes), "trust.key" (its key is not
/// in the keyring), "trust.key_expired", "trust.keyring" (the folder, or a key in it, is missing,
/// malformed or not trusted), "trust.unsupported".
Result<std::string> find_signer(const std::string& path, std::string_view sha256,
                                const std::string& keyring, std::string_view day,
                                const PathRules& rules);

}  // namespace opmux::plugin
