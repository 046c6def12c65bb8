#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "plugin/trust/trusted_path.hpp"

namespace opmux::plugin {

/// The text files of signing. The first line is "opmux-KIND 1"; then follow lines "name: value".
/// Each name occurs once, and only the names of the kind are allowed. Lines end with
/// ; `#` starts a comment.
///
///     opmux-key 1            opmux-secret-key 1       opmux-signature 1
///     name: acme             name: acme               key: 64 digits
///     key: 64 digits         seed: 64 digits          sha256: 64 digits
///     expires: 2031-12-31                             signature: 128 digits
///
/// `expires` is optional. It is the last day, in UTC, on which the key is valid.
struct KeyFile {
  std::string name, key, expires;
};
struct SecretKeyFile {
  std::string name, seed;
};
struct SignatureFile {
  std::string key, sha256, signature;
};

inline constexpr uint64_t kLargestKeyFile = 4096;  ///< limit in bytes

/// Each fails with the given `reason` and a message about the wrong line.
Result<KeyFile> read_key_file(std::string_view text, std::string_view reason);
Result<SecretKeyFile> read_secret_key_file(std::string_view text, std::string_view reason);
Result<SignatureFile> read_signature_file(std::string_view text, std::string_view reason);

std::string text_of(const KeyFile& file);
std::string text_of(const SecretKeyFile& file);
std::string text_of(const SignatureFile& file);

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
