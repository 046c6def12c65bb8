#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace opmux::base {

/// Two lower-case digits for each byte.
std::string hex(std::span<const std::byte> bytes);

/// SHA-256 in 64 hexadecimal digits; empty if the library was built without signatures.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace opmux::base
