#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/explanation.hpp>
#include <opmux/policy.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/system/clock.hpp"
#include "dispatch/compiled_operator.hpp"
#include "dispatch/sample/repeated_call.hpp"
#include "tune/race/race.hpp"
#include "tune/tuning_row.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::shadow {

/// The runtime that uses a measured row.
class RowUser {
 public:
  virtual ~RowUser() = default;
  /// Lets later calls use a row. Fails with `frozen`, or if there is no room for it. Throws
  /// std::bad_alloc.
  virtual Status use_row(const std::string& op, const tune::TuningRow& row) = 0;
};

/// Measures calls that the shadow check has copied, on its thread, and proposes implementations
/// that are faster than the one that runs; see TuningControl::proposals(). A call is measured when
/// calls with its types and sizes were copied kHot times, and not again after a verdict.
class OnlineTuner {
 public:
  static constexpr uint32_t kHot = 4;
  static constexpr uint32_t kMostTries = 3;   ///< races of a cell without a verdict
  static constexpr size_t kMostCells = 1024;  ///< others are ignored
  static constexpr size_t kMostProposals = 256;
  static constexpr uint64_t kMostRaceNs = 500'000'000;

  /// The objects must outlive it.
  OnlineTuner(const base::Clock& clock, base::EventLog& log) : clock_(clock), log_(log) {}

  /// Sets the runtime that uses rows. Must be called before the first look_at().
  void attach(RowUser& user) { user_ = &user; }
  void follow(Tuning mode) { mode_.store(mode, std::memory_order_release); }
  bool on() const { return mode() >= Tuning::online; }

  /// Looks at a copied call whose result the reference has confirmed; `expected` is that result,
  /// and `ran` the implementation that the caller ran. Only the thread of the shadow check calls
  /// it.
  void look_at(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
               const verify::CallView& view, const verify::Expected& expected, uint32_t ran);

  std::vector<TuningProposal> proposals() const;

 private:
  struct Seen {
    uint32_t times = 0, tries = 0;
    bool done = false;
  };
  Tuning mode() const { return mode_.load(std::memory_order_acquire); }
  /// Why calls like this one are not measured; empty if they are.
  static std::string_view obstacle(const dispatch::OperatorSlot& slot,
                                   const verify::CallCopy& copy);
  Seen* seen(const std::string& cell);
  void measure(const tune::Cell& cell, dispatch::RepeatedCall& call, std::vector<size_t> right,
               Seen& seen);
  void propose(const tune::Cell& cell, const dispatch::RepeatedCall& call, size_t winner,
               const tune::race::Standing& standing);

  const base::Clock& clock_;
  base::EventLog& log_;
  RowUser* user_ = nullptr;
  std::atomic<Tuning> mode_{Tuning::bundle};
  std::map<std::string, Seen> cells_;  ///< by operator and cell
  std::set<std::string> told_;         ///< operators of which some calls are not measured
  mutable base::ForkGuarded<std::vector<TuningProposal>> proposals_;
};

}  // namespace opmux::shadow
