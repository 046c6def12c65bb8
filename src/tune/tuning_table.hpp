#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "tune/bundle_set.hpp"
#include "tune/tuning_view.hpp"

namespace opmux::tune {

/// The rows of the bundles that a runtime uses now. Thread-safe after open().
class TuningTable final : public TuningView {
 public:
  explicit TuningTable(base::EventLog& log) : log_(log) {}

  /// Opens the bundles of these places. Does not fail. Called once, before any other function.
  void open(const BundlePlaces& places);
  /// The same if this were the machine; for tests.
  void open(const BundlePlaces& places, const Machine& here);

  /// Looks into the same places again. Returns the operators whose rows may differ: those that the
  /// bundles before have rows of, or those that are used from now on. Throws std::bad_alloc, and
  /// changes nothing, if there is not enough memory.
  std::set<std::string> reopen();

  /// Adds a row that this runtime measured; it counts like one of a bundle that is trusted least,
  /// until the runtime ends. The operator must be decided again. False if it has kMostOwn already.
  /// Throws std::bad_alloc.
  bool add(const std::string& op, TuningRow row);
  static constexpr size_t kMostOwn = 256;  ///< rows of one operator

  std::shared_ptr<const RowIndex> rows_of(const registry::OperatorRecord& op) const override;
  void log_problems() const override;

  std::vector<FoundBundle> found() const;

 private:
  /// Null before open().
  using Current = std::shared_ptr<const BundleSet>;
  Current bundles() const { return *bundles_.get(); }
  Current read() const;

  base::EventLog& log_;
  BundlePlaces places_;
  std::optional<Machine> here_;  ///< given by a test
  base::Published<Current> bundles_;
  using OwnRows = std::map<std::string, std::vector<TuningRow>, std::less<>>;
  mutable base::ForkGuarded<OwnRows> own_;  ///< by operator
};

}  // namespace opmux::tune
