#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace opmux::base {

/// Encodes bytes as lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);

/// SHA-256 in 64 hexadecimal digits; empty if the library was built without signatures.
std::string sha256_hex(std::span<const std::byte> bytes);

/// An Ed25519 key. Keys and signatures are lower-case hexadecimal text: 64 digits for a public key
/// and for the seed of a secret key, 128 for a signature.
struct SigningKey {
  std::string seed, public_key;
};

/// True if the library was built with signatures. Otherwise the functions below return nullopt or
/// false.
bool has_signatures() noexcept;

/// Generates a new key from the system's random source.
std::optional<SigningKey> make_signing_key();
/// Derives the key from a seed; nullopt if the seed is malformed.
std::optional<SigningKey> signing_key(std::string_view seed);
std::optional<std::string> sign(const SigningKey& key, std::string_view message);
/// Verifies a signature. Also false if the key or the signature is malformed.
bool signature_holds(std::string_view public_key, std::string_view message,
                     std::string_view signature);

}  // namespace opmux::base
