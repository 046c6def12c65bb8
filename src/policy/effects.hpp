#pragma once

#include <string>
#include <vector>

#include "policy/operator_policy.hpp"

namespace opmux::policy {

/// The effect of the policies on one operator if exactly one condition is true, or none.
struct Effect {
  const Rule* rule = nullptr;      ///< the rule whose condition is true; null = no condition is
  std::string when;                ///< that condition; empty if `rule` is null
  std::vector<std::string> order;  ///< ids in the order in which a call tries them
  std::string by;                  ///< origin of the ranking or, without one, of the first drop
};

/// The effect if no condition is true, then one effect per rule whose condition applies to the
/// operator's schema, strongest first. Ignores capabilities and health.
std::vector<Effect> effects_of(const PolicySet& set,
                               const std::shared_ptr<const registry::OperatorRecord>& op);

/// Explains why no candidate is left: the origins of all drops and requirements.
std::string describe_drops(const PolicyView& view, const registry::OperatorRecord& op);

}  // namespace opmux::policy
