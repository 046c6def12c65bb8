#include "base/crypto.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#ifdef OPMUX_WITH_SIGNATURES
#include <sodium/crypto_hash_sha256.h>
#endif

namespace opmux::base {

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<size_t>(byte >> 4)];
    text += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return text;
}

#ifdef OPMUX_WITH_SIGNATURES
std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<std::byte, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex(digest);
}
#else
std::string sha256_hex(std::span<const std::byte>) { return {}; }
#endif

}  // namespace opmux::base

#ifdef OPMUX_WITH_SIGNATURES
#include <sodium/core.h>
#include <sodium/crypto_sign.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>
#endif

namespace opmux::base {

#ifdef OPMUX_WITH_SIGNATURES
namespace {

using Seed = std::array<unsigned char, crypto_sign_SEEDBYTES>;
using Public = std::array<unsigned char, crypto_sign_PUBLICKEYBYTES>;
using Secret = std::array<unsigned char, crypto_sign_SECRETKEYBYTES>;
using Signature = std::array<unsigned char, crypto_sign_BYTES>;

template <size_t Size>
std::string digits(const std::array<unsigned char, Size>& bytes) {
  return hex(std::as_bytes(std::span(bytes)));
}

/// Decodes lower-case hexadecimal digits. False unless the text has exactly the right length.
template <size_t Size>
bool read_digits(std::string_view text, std::array<unsigned char, Size>& into) {
  size_t size = 0;
  const bool read =
      sodium_hex2bin(into.data(), Size, text.data(), text.size(), nullptr, &size, nullptr) == 0;
  return read && size == Size && digits(into) == text;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

SigningKey key_of(const Seed& seed) {
  Public open{};
  Secret secret{};
  crypto_sign_seed_keypair(open.data(), secret.data(), seed.data());
  sodium_memzero(secret.data(), secret.size());
  return {digits(seed), digits(open)};
}

}  // namespace

bool has_signatures() noexcept { return sodium_init() >= 0; }

std::optional<SigningKey> make_signing_key() {
  if (!has_signatures()) return {};
  Seed seed{};
  randombytes_buf(seed.data(), seed.size());
  return key_of(seed);
}

std::optional<SigningKey> signing_key(std::string_view text) {
  Seed seed{};
  if (!has_signatures() || !read_digits(text, seed)) return {};
  return key_of(seed);
}

std::optional<std::string> sign(const SigningKey& key, std::string_view message) {
  Seed seed{};
  if (!has_signatures() || !read_digits(key.seed, seed)) return {};
  Public open{};
  Secret secret{};
  Signature signature{};
  crypto_sign_seed_keypair(open.data(), secret.data(), seed.data());
  crypto_sign_detached(signature.data(), nullptr, bytes_of(message), message.size(), secret.data());
  sodium_memzero(secret.data(), secret.size());
  return digits(signature);
}

bool signature_holds(std::string_view public_key, std::string_view message, std::string_view text) {
  Public open{};
  Signature signature{};
  if (!has_signatures() || !read_digits(public_key, open) || !read_digits(text, signature)) {
    return false;
  }
  return crypto_sign_verify_detached(signature.data(), bytes_of(message), message.size(),
                                     open.data()) == 0;
}
#else
bool has_signatures() noexcept { return false; }
std::optional<SigningKey> make_signing_key() { return {}; }
std::optional<SigningKey> signing_key(std::string_view) { return {}; }
std::optional<std::string> sign(const SigningKey&, std::string_view) { return {}; }
bool signature_holds(std::string_view, std::string_view, std::string_view) { return false; }
#endif

}  // namespace opmux::base
