#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

namespace opmux::plugin {

/// The small text files of signing: a first line "opmux-KIND 1", then lines "name: value", each
/// name once, no others than those that the kind has. Lines end with \n; `#` starts a comment.
///
///     opmux-key 1            opmux-secret-key 1       opmux-signature 1
///     name: acme             name: acme               key: 64 digits
///     key: 64 digits         seed: 64 digits          sha256: 64 digits
///     expires: 2031-12-31                             signature: 128 digits
///
/// `expires` may be missing; its day is the last on which the key is good, in UTC.
struct KeyFile {
  std::string name, key, expires;
};
struct SecretKeyFile {
  std::string name, seed;
};
struct SignatureFile {
  std::string key, sha256, signature;
};

inline constexpr uint64_t kLargestKeyFile = 4096;  ///< in bytes

/// Each fails with a sentence about the line that is wrong; `reason` is the caller's.
Result<KeyFile> read_key_file(std::string_view text, std::string_view reason);
Result<SecretKeyFile> read_secret_key_file(std::string_view text, std::string_view reason);
Result<SignatureFile> read_signature_file(std::string_view text, std::string_view reason);

std::string text_of(const KeyFile& file);
std::string text_of(const SecretKeyFile& file);
std::string text_of(const SignatureFile& file);

}  // namespace opmux::plugin
