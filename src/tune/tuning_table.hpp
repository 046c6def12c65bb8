#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "tune/bundle_file.hpp"
#include "tune/machine.hpp"
#include "tune/row_index.hpp"
#include "tune/tuning_view.hpp"

namespace opmux::tune {

/// Where a runtime looks for bundles, those that it trusts most first.
struct BundlePlaces {
  std::string local;    ///< folder; empty: none
  std::string given;    ///< file or folder that OPMUX_TUNING names; empty: not set
  std::string shipped;  ///< folder; empty: none
};

/// One file in these places.
struct FoundBundle {
  std::string path;
  Place place = Place::local;
  std::string digest;   ///< of the header; empty if the file was refused
  std::string problem;  ///< why the file was refused; or empty
  uint64_t rows = 0;
  /// Of the operators that were used so far, except `foreign`, which counts all rows.
  RowCounts counts;
};

/// The rows of all bundles that a runtime found. Opening a bundle reads only its header. The
/// section of an operator is read when the operator is first used, and is compiled again when its
/// implementations change. A file or section that cannot be read is reported by an event
/// ("tune.bundle", "tune.section") and counted. Thread-safe after open().
class TuningTable final : public TuningView {
 public:
  static constexpr size_t kMostBundles = 64;  ///< in one folder; others are reported and ignored

  explicit TuningTable(base::EventLog& log) : log_(log) {}

  /// Opens the bundles of these places. Does not fail. Called once, before any other function.
  void open(const BundlePlaces& places);
  /// The same as if this were the machine; for tests.
  void open(const BundlePlaces& places, const Machine& here);

  std::shared_ptr<const RowIndex> rows_of(const registry::OperatorRecord& op) const override;
  void log_problems() const override;

  std::vector<FoundBundle> found() const;

 private:
  struct File {
    FoundBundle about;
    std::optional<BundleFile> bundle;
  };
  /// Position of a file, and of a section in it.
  using SectionAt = std::pair<uint32_t, uint32_t>;
  struct Compiled {
    uint64_t revision = 0;
    std::shared_ptr<const RowIndex> rows;
    std::vector<std::pair<uint32_t, RowCounts>> counts;  ///< by file
  };
  using CompiledByOp = std::map<std::string, Compiled, std::less<>>;
  /// A section that could not be read.
  struct Problem {
    std::string op, path, text;
  };

  /// This machine, which is described at its first use, because reading facts about many processors
  /// takes longer than opening a bundle.
  const Machine& here() const;
  void open_place(const std::string& path, Place place);
  void open_file(const std::string& path, Place place);
  void refuse(const std::string& path, Place place, const Status& why);
  void list_sections();
  Compiled compile(const registry::OperatorRecord& op,
                   const std::vector<SectionAt>& sections) const;

  base::EventLog& log_;
  std::optional<Machine> here_;  ///< given by a test
  std::vector<File> files_;
  std::map<std::string, std::vector<SectionAt>, std::less<>> sections_;  ///< by operator
  mutable base::ForkGuarded<CompiledByOp> compiled_;
  mutable std::atomic<bool> has_problems_{false};
  mutable base::ForkGuarded<std::vector<Problem>> problems_;  ///< not logged yet
};

}  // namespace opmux::tune
