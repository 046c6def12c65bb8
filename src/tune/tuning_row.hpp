#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/status.hpp>

#include "tune/verdict.hpp"

namespace opmux::tune {

/// How carefully a row was measured; a later one is more careful.
enum class Rigor : uint8_t {
  quick,      ///< a race that ended early, or with few rounds
  full,       ///< a whole race
  confirmed,  ///< a whole race, and a second one of the two fastest in a new process
};
std::string_view rigor_name(Rigor rigor);

/// An implementation and the build of its library, because another build may have another speed.
struct Build {
  std::string id;     ///< "openblas.gemm", without the operator
  std::string build;  ///< build id of the library; may be empty

  auto operator<=>(const Build&) const = default;
};

/// The calls of an operator that a row is about, apart from one dimension that varies.
struct Cell {
  std::string dtypes;                                 ///< of its tensors, in order: "f32,f32,f32"
  std::vector<std::pair<std::string, int64_t>> dims;  ///< the dimensions that are fixed, by name
  uint32_t threads = 1;                               ///< that the call may use
  bool captured = false;                              ///< in a graph of a device

  auto operator<=>(const Cell&) const = default;
};
/// "f32,f32,f32 K=2048 N=2048 threads=1 eager": the form in files and in messages.
std::string text_of(const Cell& cell);
/// Reads text_of(). Fails with "tune.cell".
Result<Cell> read_cell(std::string_view text);

/// The values of the dimension that varies. `dim` is empty if none does, and the row is about all
/// calls of the cell.
struct Range {
  std::string dim;
  int64_t first = 0, last = 0;  ///< both belong to it

  bool contains(int64_t value) const { return first <= value && value <= last; }
  auto operator<=>(const Range&) const = default;
};

/// One measurement: how long calls of an implementation take compared with calls of a baseline, in
/// the same rounds. Ratios only, because times of different moments cannot be compared.
struct TuningRow {
  Cell cell;
  Range range;
  Build implementation, baseline;
  /// log(time of the implementation / time of the baseline) and its bounds; multiples of
  /// kLogRatioUnit, so that every form of a row has the same numbers.
  double log_ratio = 0, low = 0, high = 0;
  uint32_t rounds = 0;
  Rigor rigor = Rigor::quick;
  uint32_t day = 0;   ///< days since 1970-01-01, in UTC
  std::string tool;   ///< version of opmux that measured
  uint64_t host = 0;  ///< a hash of the host's name, for provenance only

  bool operator==(const TuningRow&) const = default;
};

inline constexpr double kLogRatioUnit = 1e-4;
/// Larger log ratios are cut off; it is a factor of 485 million.
inline constexpr double kLargestLogRatio = 20;

inline constexpr uint32_t kLastDay = 2'932'896;  ///< 9999-12-31, as TuningRow::day

/// The nearest multiple of kLogRatioUnit within +-kLargestLogRatio, as a count of units.
int32_t to_units(double log_ratio);
inline double from_units(int32_t units) { return units * kLogRatioUnit; }

inline Verdict verdict_of(const TuningRow& row) {
  return verdict_of(row.log_ratio, row.low, row.high);
}

/// False if the text form of a row, whose words are separated by spaces and end at a '#', could not
/// have these texts: printable ASCII without either. Of a name of the operator, an implementation,
/// a build or a tool. An empty text is a word.
bool is_word(std::string_view text);
/// The same of a text that fills the rest of a line, as those of a Machine do: single spaces
/// between words are allowed.
bool is_line(std::string_view text);

/// The order of rows in files: by cell, range, implementation and baseline.
bool row_before(const TuningRow& a, const TuningRow& b);

}  // namespace opmux::tune
