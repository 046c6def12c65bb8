#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "tune/bundle_file.hpp"
#include "tune/machine.hpp"
#include "tune/row_index.hpp"

namespace opmux::tune {

/// Where a runtime looks for bundles, those that it trusts most first.
struct BundlePlaces {
  std::string local;    ///< folder; empty: none
  std::string given;    ///< file or folder that OPMUX_TUNING names; empty: not set
  std::string shipped;  ///< folder; empty: none
  /// Returns the name of the key that signed the bundle at `path`, whose header has this digest, or
  /// the reason to refuse it. Asked for the bundles of `given`; null: they need no signature.
  std::function<Result<std::string>(const std::string& path, const std::string& digest)> signer_of =
      nullptr;
};

/// One file in these places.
struct FoundBundle {
  std::string path;
  Place place = Place::local;
  std::string digest;   ///< of the header; empty if the file was refused
  std::string problem;  ///< why the file was refused; or empty
  std::string signer;   ///< name of the key that signed it; empty if none had to
  uint64_t rows = 0;
  /// Of the operators that were used so far, except `foreign`, which counts all rows.
  RowCounts counts;
};

/// The bundles that were in these places at one moment. Opening a bundle reads only its header. The
/// section of an operator is read when the operator is first used, and is compiled again when its
/// implementations change. Thread-safe.
class BundleSet {
 public:
  static constexpr size_t kMostBundles = 64;  ///< in one folder; others are reported and ignored

  /// Does not fail: a file that cannot be used is listed with the reason, and reported by the event
  /// "tune.bundle". `here` is this machine for tests.
  BundleSet(base::EventLog& log, const BundlePlaces& places, std::optional<Machine> here = {});

  /// As TuningView::rows_of(), with rows that this runtime measured after those of the bundles.
  std::shared_ptr<const RowIndex> rows_of(const registry::OperatorRecord& op,
                                          const std::vector<TuningRow>& own = {}) const;
  /// Logs the sections that could not be read since the last call: "tune.section".
  void log_problems() const;

  std::vector<FoundBundle> found() const;
  /// Names of the operators that the bundles have rows of.
  std::set<std::string> operators() const;

 private:
  struct File {
    FoundBundle about;
    std::optional<BundleFile> bundle;
  };
  /// Position of a file, and of a section in it.
  using SectionAt = std::pair<uint32_t, uint32_t>;
  struct Compiled {
    uint64_t revision = 0;
    size_t own = 0;  ///< how many rows the runtime itself had measured
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
  /// For bundles that must be signed; see BundlePlaces::signer_of.
  Result<std::string> find_signer(const std::string& path, Place place,
                                  const std::string& digest) const;
  void refuse(const std::string& path, Place place, const Status& why);
  void list_sections();
  Compiled compile(const registry::OperatorRecord& op, const std::vector<SectionAt>& sections,
                   const std::vector<TuningRow>& own) const;

  base::EventLog& log_;
  std::optional<Machine> here_;  ///< given by a test
  const decltype(BundlePlaces::signer_of) signer_of_;
  std::vector<File> files_;
  std::map<std::string, std::vector<SectionAt>, std::less<>> sections_;  ///< by operator
  mutable base::ForkGuarded<CompiledByOp> compiled_;
  mutable std::atomic<bool> has_problems_{false};
  mutable base::ForkGuarded<std::vector<Problem>> problems_;  ///< not logged yet
};

}  // namespace opmux::tune
