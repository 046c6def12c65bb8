#pragma once

#include <string>
#include <vector>

#include "policy/environment.hpp"
#include "policy/policy_set.hpp"

namespace opmux::policy {

/// One line of `opmux config show`.
struct Setting {
  std::string key;     ///< "prefer", "order.rms_norm", "deny", "backend.simd"
  std::string value;   ///< lists by comma
  std::string origin;  ///< as describe(Origin) says it
};

/// What holds for every operator, and the orders of single ones. An ordering field has one line,
/// from the strongest layer that sets it; constraints and rules have one per layer.
std::vector<Setting> effective_settings(const PolicySet& set);

/// What the environment says about the process itself: mode, paths, switches.
std::vector<Setting> process_settings(const Environment& environment);

}  // namespace opmux::policy
