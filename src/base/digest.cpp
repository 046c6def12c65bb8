#include "base/digest.hpp"

#include <array>
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
