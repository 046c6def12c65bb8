#pragma once

#include <array>
#include <bit>
#include <cstdint>

/// The layout of a bundle, a file of tuning rows. A service maps it and checks the header alone; a
/// section is checked when its operator is first compiled. Numbers are little-endian.
///
///   Header, MachineEntry[machines], SectionEntry[sections], strings of the header
///   for each section, anywhere behind the header: Row[rows], strings of the section
///
/// A text is the offset of a zero-terminated string in the strings of its header or section.
namespace opmux::tune::format {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> kMagic{'O', 'P', 'M', 'U', 'X', 'T', 'U', 'N'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kMostHeaderBytes = 65536;

using Digest = std::array<unsigned char, 32>;  ///< SHA-256

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t header_size;  ///< with the tables and strings of the header
  uint64_t file_size;
  uint32_t measurement;  ///< kMeasurement of the tool that measured
  uint32_t machines, sections, strings_size;
  Digest digest;  ///< of the header, with zeros here
};

struct MachineEntry {
  uint32_t hard, soft;  ///< texts; see tune::Machine
};

struct SectionEntry {
  uint32_t op;       ///< text
  uint32_t machine;  ///< index
  uint64_t schema_hash;
  uint64_t offset;  ///< in the file
  uint32_t rows, strings_size;
  Digest digest;  ///< of the rows and strings
};

struct Row {
  uint32_t cell, dim;  ///< texts
  int64_t first, last;
  uint32_t implementation, build, baseline, baseline_build;  ///< texts
  int32_t log_ratio, low, high;                              ///< in units of kLogRatioUnit
  uint32_t rounds, day;
  uint32_t tool;  ///< text
  uint64_t host;
  uint8_t rigor;
  std::array<uint8_t, 7> reserved;  ///< zeros
};

static_assert(sizeof(Header) == 72 && sizeof(MachineEntry) == 8 && sizeof(SectionEntry) == 64 &&
              sizeof(Row) == 80);

}  // namespace opmux::tune::format
