#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opmux::base {

/// Keys and signatures are lower-case hexadecimal digits: 64 for a public key and for the seed of a
/// secret one, 128 for a signature.
struct SigningKey {
  std::string seed, public_key;
};

/// Whether the library was built with signatures; without, the functions below give nothing.
bool has_signatures() noexcept;

/// A new key from the system's randomness.
std::optional<SigningKey> make_signing_key();
/// The key of a seed; none if that is malformed.
std::optional<SigningKey> signing_key(std::string_view seed);
std::optional<std::string> sign(const SigningKey& key, std::string_view message);
/// False also if the key or the signature is malformed.
bool signature_holds(std::string_view public_key, std::string_view message,
                     std::string_view signature);

}  // namespace opmux::base
