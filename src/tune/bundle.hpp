#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "tune/machine.hpp"
#include "tune/tuning_row.hpp"

namespace opmux::tune {

/// The rules by which opmux measures; rows of another version are not compared with new ones.
inline constexpr uint32_t kMeasurement = 1;

/// Rows of one operator that were measured on one machine.
struct OperatorRows {
  std::string op;
  uint64_t schema_hash = 0;
  uint32_t machine = 0;  ///< index into TuningSet::machines
  std::vector<TuningRow> rows;

  bool operator==(const OperatorRows&) const = default;
};

/// Everything in a bundle.
struct TuningSet {
  uint32_t measurement = kMeasurement;
  std::vector<Machine> machines;
  std::vector<OperatorRows> operators;

  bool operator==(const TuningSet&) const = default;
};

/// Reads a bundle from memory, which must outlive it. Opening it costs a digest of the header, at
/// most 64 KiB; the rows of an operator are checked when they are read. Safe for untrusted bytes.
class Bundle {
 public:
  struct Section {
    std::string op;
    uint64_t schema_hash = 0;
    uint32_t machine = 0, rows = 0;
    uint64_t offset = 0, size = 0;     ///< of its bytes in the file
    std::span<const std::byte> bytes;  ///< empty after open_header()
    std::string digest;                ///< SHA-256 of the bytes, in hexadecimal digits
  };

  /// Fails with "tune.bundle", and with "tune.unsupported" if the library was built without
  /// signatures and so cannot check digests.
  static Result<Bundle> open(std::span<const std::byte> bytes);
  /// Opens the first bytes of a file of `file_size` bytes, at least the header, and checks the
  /// same. It may be destroyed afterwards.
  static Result<Bundle> open_header(std::span<const std::byte> start, uint64_t file_size);

  uint32_t measurement() const { return measurement_; }
  const std::string& digest() const { return digest_; }  ///< of the header, and so of everything
  const std::vector<Machine>& machines() const { return machines_; }
  const std::vector<Section>& sections() const { return sections_; }

  /// The rows of a section. Fails with "tune.section" if its digest does not match or a row is
  /// malformed.
  static Result<std::vector<TuningRow>> rows(const Section& section);
  /// The same for bytes that were read from the file.
  static Result<std::vector<TuningRow>> rows(const Section& section,
                                             std::span<const std::byte> bytes);
  /// All rows. Fails as rows() does.
  Result<TuningSet> read_all() const;

 private:
  Bundle() = default;

  uint32_t measurement_ = 0;
  std::string digest_;
  std::vector<Machine> machines_;
  std::vector<Section> sections_;
};

}  // namespace opmux::tune
