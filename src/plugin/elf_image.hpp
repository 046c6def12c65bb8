#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/text.hpp"

namespace opmux::plugin {

inline Status bad_elf(std::string_view reason, std::string_view message) {
  return {Code::invalid_argument, base::concat("elf.", reason), std::string(message)};
}

/// A value at an offset, if it lies inside.
template <class T>
std::optional<T> value_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// A library's file and how its parts lie in memory. Borrows the bytes.
class ElfImage {
 public:
  /// Checks the header and the segments; they may not overlap.
  static Result<ElfImage> read(std::span<const std::byte> file);

  /// The program headers of a kind, in order.
  std::vector<Elf64_Phdr> headers(uint32_t type) const;
  /// Bytes from the file that lie in memory from `address` to the end of their segment; empty if
  /// nothing of the file lies there.
  std::span<const std::byte> from(uint64_t address) const;
  /// Bytes of the file; empty if they are not inside.
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const;

 private:
  Status take_header();
  Status take_segments();

  std::span<const std::byte> file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> headers_;
};

}  // namespace opmux::plugin
