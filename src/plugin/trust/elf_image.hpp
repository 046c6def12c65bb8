#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/text.hpp"

namespace opmux::plugin {

/// Facts about a plugin's file that are known before any of its code runs.
struct ElfFacts {
  /// The linker's build-id note in hexadecimal; may be empty.
  std::string build_id;
  std::string soname;                   ///< the name by which others need it; may be empty
  std::vector<std::string> needed;      ///< libraries that the dynamic loader will look for
  std::vector<std::string> run_path;    ///< folders in RPATH and RUNPATH
  std::vector<uint32_t> query;          ///< N of every exported opmux_plugin_query_vN
  std::vector<std::string> interposes;  ///< exported names that belong to the C library
  std::vector<std::string> exported;    ///< the first names of other exported symbols
  uint64_t exports = 0;                 ///< number of other exported symbols
  bool executable_stack = false;        ///< the library requires executable stacks
};

inline Status bad_elf(std::string_view reason, std::string_view message) {
  return {Code::invalid_argument, base::concat("elf.", reason), std::string(message)};
}

/// The value at an offset; nullopt if it is not completely inside.
template <class T>
std::optional<T> value_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// A library's file and the mapping of its segments to addresses. Borrows the bytes.
class ElfImage {
 public:
  /// Checks the header and the segments, which must not overlap.
  static Result<ElfImage> read(std::span<const std::byte> file);

  /// The program headers of a type, in order.
  std::vector<Elf64_Phdr> headers(uint32_t type) const;
  /// The file's bytes that are mapped from `address` to the end of the segment; empty if no part of
  /// the file is mapped there.
  std::span<const std::byte> from(uint64_t address) const;
  /// A range of the file; empty if it is not completely inside.
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const;

 private:
  Status take_header();
  Status take_segments();

  std::span<const std::byte> file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> headers_;
};

}  // namespace opmux::plugin
