#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace opmux::base {

/// Encodes bytes as lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);

/// SHA-256 in 64 hexadecimal digits; empty if the library was built without signatures.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace opmux::base
