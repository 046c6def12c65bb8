#pragma once

#include <string>
#include <vector>

#include "policy/rules/environment.hpp"
#include "policy/rules/policy_set.hpp"

namespace opmux::policy {

/// One line of `opmux config show`.
struct Setting {
  std::string key;     ///< "prefer", "order.rms_norm", "deny", "backend.simd"
  std::string value;   ///< lists are joined by commas
  std::string origin;  ///< text of describe(Origin)
};

/// Settings that apply to all operators, and the orders of single operators. An ordering field has
/// one line, from the strongest layer that sets it; constraints and rules have one line per layer.
std::vector<Setting> effective_settings(const PolicySet& set);

/// Process settings from the environment: paths, switches and backends.
std::vector<Setting> process_settings(const Environment& environment);

}  // namespace opmux::policy
