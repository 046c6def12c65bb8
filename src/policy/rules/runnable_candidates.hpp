#pragma once

#include <cstdint>
#include <vector>

#include "policy/rules/operator_policy.hpp"
#include "registry/implementation/can_run.hpp"
#include "registry/record.hpp"

namespace opmux::policy {

/// Which candidates of an operator can run on this machine. Asks registry::can_run() at most once
/// for each, and only for those that an answer depends on, because asking may start a driver. Not
/// thread-safe; the record must outlive it.
class RunnableCandidates {
 public:
  explicit RunnableCandidates(const registry::OperatorRecord& op,
                              registry::Probe probe = registry::Probe::run);

  /// Whether a candidate can run; false for one in a deferred plugin.
  bool operator[](size_t candidate) { return ask(candidate) == Answer::yes; }
  /// Whether a candidate that is not in `dropped` can run.
  bool any_outside(const CandidateSet& dropped);
  /// Whether a policy leaves candidates that can run. If none can run under any policy, a policy
  /// that keeps a candidate leaves something.
  Left left_by(const PolicyView& view);

 private:
  enum class Answer : uint8_t { not_asked, no, yes, deferred };
  Answer ask(size_t candidate);

  const registry::OperatorRecord& op_;
  const registry::Probe probe_;
  std::vector<Answer> answers_;
};

}  // namespace opmux::policy
