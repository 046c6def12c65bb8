#pragma once

#include <string>
#include <vector>

#include "policy/operator_policy.hpp"

namespace opmux::policy {

/// What policies make of one operator where one condition is true, or none.
struct Effect {
  const Rule* rule = nullptr;      ///< whose condition is true; null: no condition is
  std::string when;                ///< that condition; empty: none
  std::vector<std::string> order;  ///< ids in the order in which they are tried
  std::string by;                  ///< what gave the first its place, or took all away
};

/// One effect without any condition, then one for each rule with a condition that the operator can
/// meet, strongest first. Capabilities and health play no part.
std::vector<Effect> effects_of(const PolicySet& set,
                               const std::shared_ptr<const registry::OperatorRecord>& op);

/// Why nothing is left of an operator: who denies, requires or excludes each candidate.
std::string describe_drops(const PolicyView& view, const registry::OperatorRecord& op);

}  // namespace opmux::policy
