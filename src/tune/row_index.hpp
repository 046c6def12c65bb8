#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/record.hpp"
#include "schema/dependencies.hpp"
#include "schema/lookup.hpp"
#include "tune/machine.hpp"
#include "tune/tuning_row.hpp"
#include "tune/tuning_view.hpp"

namespace opmux::tune {

/// Which bundle rows come from; of equally careful rows those of the first count.
enum class Place : uint8_t {
  local,    ///< the folder `tuning` of this user's store
  fleet,    ///< OPMUX_TUNING
  shipped,  ///< the folder `share/opmux/tuning` of the installation
  online,   ///< measured by this runtime
};
std::string_view place_name(Place place);

/// Where the rows of one section come from.
struct RowOrigin {
  std::string bundle;  ///< name of the file
  std::string digest;  ///< SHA-256 of its header, which has those of its sections
  Place place = Place::local;
  Machine machine;
  bool aged = false;  ///< measured with another kernel or microcode
};

/// Counts of the rows of a bundle.
struct RowCounts {
  uint64_t used = 0;     ///< hold here; includes `aged`
  uint64_t aged = 0;     ///< of those, measured with another kernel or microcode
  uint64_t foreign = 0;  ///< of another machine
  /// Of another schema, of an implementation that is not registered or has another build, or
  /// measured by other rules.
  uint64_t stale = 0;
  uint64_t damaged = 0;  ///< of a section that cannot be read

  RowCounts& operator+=(const RowCounts& other);
  bool operator==(const RowCounts&) const = default;
};

/// A row that holds here, for one interval of the dimension that varies.
struct HeldRow {
  uint32_t implementation = 0, baseline = 0;  ///< ImplementationRecord::number
  uint32_t cell = 0, origin = 0;              ///< positions in the index
  int64_t first = 0, last = 0;                ///< of the measured range
  MeasuredSpeed speed;                        ///< compared with the baseline
  uint32_t rounds = 0, day = 0;
  Rigor rigor = Rigor::quick;
};

/// The rows of one operator that hold for its registered implementations. Maps the facts of a call
/// to the rows about it: the cell (types, fixed dimensions, threads, eager or captured) and the
/// interval of the dimension that varies are one answer of the lookup. Immutable.
class RowIndex final : public schema::Lookup {
 public:
  struct Section {
    const std::vector<TuningRow>* rows = nullptr;
    RowOrigin origin;
    RowCounts counts;  ///< filled in by compile()
  };
  /// Drops the rows that do not hold for `op`, and counts them in the sections. `missed` counts the
  /// rows of other sections of the operator.
  static std::shared_ptr<const RowIndex> compile(const registry::OperatorRecord& op,
                                                 std::span<Section> sections,
                                                 const RowCounts& missed = {});

  /// The index has no row, and every answer is 0.
  bool empty() const { return rows_.empty(); }
  /// Counts of all rows of the operator.
  const RowCounts& counts() const { return counts_; }
  /// Adds the index and the facts of which it needs the exact values, unless it is empty.
  static void add_dependencies(const std::shared_ptr<const RowIndex>& index,
                               schema::Dependencies& into);

  /// The rows for an answer, those of the most careful comparison first.
  std::span<const HeldRow> rows(uint32_t answer) const;

  /// The rows by which candidates are compared, all with the same baseline. The best candidate by
  /// score comes first in `candidates`, which are numbers of implementations.
  struct Comparison {
    uint32_t baseline = 0;             ///< number of an implementation; 0: there are no rows
    std::vector<const HeldRow*> rows;  ///< by candidate; null: no row
    std::vector<std::optional<MeasuredSpeed>> speeds;  ///< by candidate
  };
  Comparison compare(uint32_t answer, std::span<const uint32_t> candidates) const;

  std::vector<schema::Predicate> describe(uint32_t answer) const override;

  const Cell& cell_of(const HeldRow& row) const { return cells_[row.cell].cell; }
  Range range_of(const HeldRow& row) const {
    return {cells_[row.cell].varying, row.first, row.last};
  }
  const RowOrigin& origin_of(const HeldRow& row) const { return origins_[row.origin]; }

 private:
  class Builder;
  struct CellEntry {
    Cell cell;
    std::string varying;  ///< the dimension of its ranges; empty if none varies
  };
  /// The rows about the values first to last of the dimension that varies.
  struct Segment {
    int64_t first = 0, last = 0;
    uint32_t cell = 0, rows_begin = 0, rows_end = 0;
  };
  /// The cells with the same fixed dimensions and the same varying one.
  struct Family {
    std::vector<uint16_t> fixed;  ///< positions of the fixed dimensions among the facts
    std::optional<uint16_t> varying;
    bool of_batch = false;           ///< names a size of the batch; see is_batch()
    size_t width = 0;                ///< numbers of a key
    std::vector<int64_t> keys;       ///< sorted: types, threads, captured, sizes of each cell
    std::vector<uint32_t> segments;  ///< by cell: its first segment; and the end of the last
  };

  RowIndex() = default;
  uint32_t answer_for(std::span<const int64_t> values) const override;
  uint32_t segment_in(const Family& family, std::span<const int64_t> values, int64_t types) const;

  size_t tensors_ = 0;  ///< the facts start with the types and then the devices of the tensors
  size_t threads_at_ = 0, capturing_at_ = 0, deterministic_at_ = 0;
  std::vector<std::vector<int64_t>> types_;  ///< lists of types, without absent tensors
  std::vector<Family> families_;
  std::vector<Segment> segments_;  ///< answer - 1 is the position
  std::vector<HeldRow> rows_;
  std::vector<CellEntry> cells_;
  std::vector<RowOrigin> origins_;
  RowCounts counts_;
};

/// True for sizes that say how many requests are calculated together. With `deterministic`, rows
/// about them are ignored, because a choice by them would let the neighbours of a request change
/// its numbers.
bool is_batch(std::string_view dim);

}  // namespace opmux::tune
